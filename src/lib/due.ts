// Something that is to be done later, by the clock that only ever passes.

/** What the wall clock may differ from what it was taken for before that counts as another time, ms */
const toleranceMs = 1000

/**
 * Calls `act` once `ms` have passed, never before, and however wall clocks are put meanwhile; `cancel` calls it off. It keeps no
 * process alive.
 *
 * A timer of Node's counts whole milliseconds of a clock that it rounds down, and may fire too early by up to one of them.
 */
export class Due {
  readonly #endMs: number
  /** The same by the wall clock, as it was last told */
  #toldMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, act: () => void) {
    this.#toldMs = Date.now() + ms // the earlier one: what is told is never later than what is done
    this.#endMs = performance.now() + ms
    this.#wait(act)
  }

  /** When that is by the wall clock, as it stands now: whoever puts it to another time moves this, too. */
  get at(): Date {
    const nowMs = Date.now() + this.#endMs - performance.now()
    if (Math.abs(nowMs - this.#toldMs) > toleranceMs) this.#toldMs = nowMs
    return new Date(this.#toldMs)
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }

  #wait(act: () => void): void {
    const leftMs = Math.ceil(this.#endMs - performance.now())
    if (leftMs <= 0 && this.#timer !== undefined) return act()
    this.#timer = setTimeout(() => this.#wait(act), leftMs).unref()
  }
}
