// What a run has started, undone also where it is broken off in the middle.
const statusInterrupted = 130

/**
 * A stack that a signal, or the end of who started this process, disposes of before the process ends with 130.
 *
 * What is started by `starting` is disposed of also where the signal comes before it is up.
 */
export class Undoing extends AsyncDisposableStack {
  readonly #starting = new Set<Promise<unknown>>()
  readonly #breakingOff = new AbortController()

  constructor() {
    super()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.removeAllListeners(signal) // what a test ends by would be the end before all is undone
      process.on(signal, () => void this.#breakOff())
    }
    process.once('disconnect', () => void this.#breakOff())
    process.channel?.unref() // to hear of its end is no reason to stay
  }

  /** Aborts when the run is broken off, before anything is undone. */
  get brokenOff(): AbortSignal {
    return this.#breakingOff.signal
  }

  /** Resolves with what starts, which from then on is undone with all else; null where there is nothing to start. */
  async starting<T extends AsyncDisposable | null>(start: () => Promise<T>): Promise<T> {
    if (this.brokenOff.aborted) throw new Error('the run was broken off')
    const used = start().then((it) => this.use(it))
    this.#starting.add(used)
    return await used.finally(() => this.#starting.delete(used))
  }

  async #breakOff(): Promise<void> {
    if (this.brokenOff.aborted) return
    // What the run says to that is no news.
    process.on('uncaughtException', () => undefined)
    this.#breakingOff.abort()
    await Promise.allSettled(this.#starting)
    await this.disposeAsync()
    process.exit(statusInterrupted)
  }
}
