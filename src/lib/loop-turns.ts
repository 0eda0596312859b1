// One dear step at each turn of the event loop: whoever asks for many waits, and others have their turns in between.

/**
 * The steps of one party on a thread that it shares. A step that nobody is before begins at once; of many that are asked for
 * together each turn of the event loop begins one, in the order of asking.
 */
export class LoopTurns {
  readonly #waiting: (() => void)[] = []
  #isTaken = false

  /** Resolves when the next step may begin; whether it still should is for the caller to look at. */
  take(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#isTaken) this.#waiting.push(resolve)
    else this.#begin(resolve)
    return promise
  }

  #begin(step: () => void): void {
    this.#isTaken = true
    setImmediate(() => {
      const next = this.#waiting.shift()
      if (next === undefined) this.#isTaken = false
      else this.#begin(next)
    })
    step()
  }
}
