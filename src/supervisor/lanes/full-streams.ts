// Backpressure: where a stream is full, whoever fills it is not read until it has drained.
import type { Readable, Writable } from 'node:stream'

/** Knows who waits for which stream. */
export class FullStreams {
  readonly #waiting = new Map<Writable, Set<Readable>>()
  readonly #resume: (source: Readable) => void

  /** `resume` is told of each source that need not wait any longer for the stream that was full. */
  constructor(resume: (source: Readable) => void) {
    this.#resume = resume
  }

  /** Reads nothing of the source until the full stream has drained. True where it did not wait for it already. */
  pause(full: Writable, source: Readable): boolean {
    source.pause()
    const waiting = this.#waiting.get(full) ?? new Set()
    const { size } = waiting
    waiting.add(source)
    this.#waiting.set(full, waiting)
    if (size === 0) this.#untilDrained(full, waiting)
    return waiting.size > size
  }

  #untilDrained(full: Writable, waiting: ReadonlySet<Readable>): void {
    full.once('drain', () => {
      this.#waiting.delete(full)
      for (const paused of waiting) this.#resume(paused)
    })
  }

  /** Whether the source waits for that one. */
  isWaiting(source: Readable, full: Writable | undefined): boolean {
    return full !== undefined && this.#waiting.get(full)?.has(source) === true
  }

  /** The stream is let go of, full or not. */
  forget(full: Writable | undefined): void {
    if (full !== undefined) this.#waiting.delete(full)
  }
}
