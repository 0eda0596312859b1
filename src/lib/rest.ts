// When something that nobody uses may rest.

/** The longest that one timer of Node's waits, ms */
const longestTimerMs = 2 ** 31 - 1

/** Calls `act` once `ms` have gone by since the last `begin`; 0 is never. It keeps no process alive. */
export class Rest {
  readonly #ms: number
  readonly #act: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, act: () => void) {
    this.#ms = ms
    this.#act = act
  }

  /** From now on nobody uses it. */
  begin(): void {
    this.end()
    if (this.#ms > 0) this.#wait(this.#ms)
  }

  /** Somebody does. */
  end(): void {
    clearTimeout(this.#timer)
  }

  #wait(leftMs: number): void {
    const ms = Math.min(leftMs, longestTimerMs)
    this.#timer = setTimeout(() => (leftMs > ms ? this.#wait(leftMs - ms) : this.#act()), ms).unref()
  }
}
