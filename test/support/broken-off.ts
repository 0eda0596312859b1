// What a run has started, undone also where it is broken off in the middle, or fails where nobody waits for it.
import { inspect } from 'node:util'
import { reasonOf } from './reason.ts'

const statusInterrupted = 130
const statusFailed = 1

/**
 * A stack that a signal, or the end of who started this process, disposes of before the process ends with 130; an error
 * that nobody waits for ends it with 1, as told to who started it.
 *
 * What is started by `starting` is disposed of also where the signal comes before it is up; one that comes while all is
 * undone already waits for the end of that.
 */
export class Undoing extends AsyncDisposableStack {
  readonly #starting = new Set<Promise<unknown>>()
  readonly #breakingOff = new AbortController()
  #undone: Promise<void> | null = null

  constructor() {
    super()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.removeAllListeners(signal) // what a test ends by would be the end before all is undone
      process.on(signal, () => void this.#breakOff(statusInterrupted))
    }
    process.once('disconnect', () => void this.#breakOff(statusInterrupted))
    process.on('uncaughtException', (error) => void this.#fail(error))
    process.channel?.unref() // to hear of its end is no reason to stay
  }

  /** Aborts when the run is broken off, before anything is undone. */
  get brokenOff(): AbortSignal {
    return this.#breakingOff.signal
  }

  /**
   * Resolves with what starts, which from then on is undone with all else; null where there is nothing to start. Where that
   * takes long, it is to give up when the signal that it is given aborts: a run that is broken off waits for it.
   */
  async starting<T extends AsyncDisposable | null>(
    start: (brokenOff: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.brokenOff.aborted) throw new Error('the run was broken off')
    const used = start(this.brokenOff).then((it) => this.use(it))
    this.#starting.add(used)
    return await used.finally(() => this.#starting.delete(used))
  }

  /** Who disposes it a second time waits, too: of itself the stack answers at once. */
  override disposeAsync(): Promise<void> {
    this.#undone ??= super.disposeAsync()
    return this.#undone
  }

  override [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync()
  }

  async #fail(error: Error): Promise<void> {
    // What the run says to being broken off is no news.
    if (this.brokenOff.aborted) return
    process.stderr.write(`${inspect(error)}\n`)
    if (process.connected) process.send?.({ failure: reasonOf(error) })
    await this.#breakOff(statusFailed)
  }

  async #breakOff(status: number): Promise<void> {
    if (this.brokenOff.aborted) return
    this.#breakingOff.abort()
    await Promise.allSettled(this.#starting)
    await this.disposeAsync().catch((error: unknown) => process.stderr.write(`${inspect(error)}\n`))
    process.exit(status)
  }
}
