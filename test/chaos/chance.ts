// Chance that comes again: the same seed gives the same draws to whoever has a name, whatever others draw meanwhile.
import { hash } from 'node:crypto'

/** A stream of draws. */
export class Chance {
  readonly #path: string
  #state: number

  constructor(seed: string) {
    this.#path = seed
    this.#state = Number.parseInt(hash('sha256', seed).slice(0, 8), 16)
  }

  /** A stream of its own for somebody. */
  of(name: string): Chance {
    return new Chance(`${this.#path}/${name}`)
  }

  /** From 0 to below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  /** True so many times in a hundred. */
  percent(share: number): boolean {
    return this.next() * 100 < share
  }

  pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.next() * list.length)]
    if (found === undefined) throw new Error('nothing to pick from')
    return found
  }

  /** One of the values, each as often as its weight says. */
  weighed<T>(weights: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * weights.reduce((sum, [weight]) => sum + weight, 0)
    const found = weights.find(([weight]) => (left -= weight) < 0) ?? weights.at(-1)
    if (found === undefined) throw new Error('nothing to weigh')
    return found[1]
  }
}
