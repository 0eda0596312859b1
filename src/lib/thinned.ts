// What anybody can cause as often as they like must not fill a log: the first of a kind is told, and then one each while.

/** Kinds that are told apart at a time; beyond that all begin anew */
const maxKinds = 1024

/** Counts by kind. */
export class Thinned {
  readonly #everyMs: number
  readonly #now: () => number
  readonly #kinds = new Map<string, { toldMs: number; untold: number }>()

  /** `now` is in ms, and only ever passes. */
  constructor(everyMs: number, now: () => number = () => performance.now()) {
    this.#everyMs = everyMs
    this.#now = now
  }

  /** How many of the kind came since one was told, this one included; null where this one is not to be told. */
  count(kind: string): number | null {
    const now = this.#now()
    const known = this.#kinds.get(kind)
    if (known !== undefined && now - known.toldMs < this.#everyMs) {
      known.untold++
      return null
    }
    if (this.#kinds.size >= maxKinds) this.#kinds.clear()
    this.#kinds.set(kind, { toldMs: now, untold: 0 })
    return (known?.untold ?? 0) + 1
  }
}
