// Clients that are told that a connection which they keep is over.
import type { Socket } from 'node:net'

/** What is waited for clients that don't close their end until they look at it, ms */
const waitMs = 100

/**
 * The clients of one sandbox whose connections ended with a call. A program that is called again at once would take such a
 * connection from its pool before it has read that it is over, and fail.
 */
export class Partings {
  readonly #open = new Set<Promise<void>>()

  add(client: Socket): void {
    if (client.destroyed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const seen = promise.then(() => void this.#open.delete(seen))
    this.#open.add(seen)
    const waited = setTimeout(resolve, waitMs)
    client.once('close', () => {
      clearTimeout(waited)
      resolve()
    })
  }

  /** Resolves when each has closed its end, or had 0.1 s to; null where none has to. */
  over(): Promise<void> | null {
    return this.#open.size === 0 ? null : Promise.all(this.#open).then(() => undefined)
  }
}
