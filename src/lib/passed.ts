// Time that passes while the machine sleeps, too: what is good for minutes is not good for the night.
import { uptime } from 'node:os'

/** How far the wall clock moves against the steady one before anybody looks whether the machine has slept, ms */
const movedMs = 1000

/** Three counts of time, ms: the steady one stands still while the machine sleeps, the other two do not, and the wall clock is set by hand. */
export interface Clocks {
  readonly steady: () => number
  readonly wall: () => number
  readonly boot: () => number
}

const machine: Clocks = {
  steady: () => performance.now(),
  wall: () => Date.now(),
  boot: () => uptime() * 1000,
}

/** Counts what passes, by a clock that nobody sets. */
export class Passed {
  readonly #clocks: Clocks
  readonly #awakeMs: number
  #leadMs: number
  #sleptMs = 0

  constructor(clocks: Clocks = machine) {
    this.#clocks = clocks
    this.#awakeMs = this.#aheadMs(clocks.boot())
    this.#leadMs = this.#aheadMs(clocks.wall())
  }

  /** Milliseconds since a beginning that means nothing. The machine's count is asked for where the wall clock shows a reason: it is a file. */
  now(): number {
    const leadMs = this.#aheadMs(this.#clocks.wall())
    if (Math.abs(leadMs - this.#leadMs) > movedMs) {
      this.#leadMs = leadMs
      this.#sleptMs = Math.max(this.#sleptMs, this.#aheadMs(this.#clocks.boot()) - this.#awakeMs)
    }
    return this.#clocks.steady() + this.#sleptMs
  }

  #aheadMs(ms: number): number {
    return ms - this.#clocks.steady()
  }
}

const passed = new Passed()

/** The same of this machine, since this process began. */
export const passedMs = (): number => passed.now()
