// Waiting, with an end.
import type { EventEmitter } from 'node:events'
import { setTimeout as after } from 'node:timers/promises'

/** Asks again every 2 ms; fails after `limitMs` with what was not so. Nothing else goes on meanwhile that is measured. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const began = performance.now()
  while (!(await isSo())) {
    if (performance.now() - began > limitMs) throw new Error(`not within ${limitMs / 1000} s: ${what}`)
    await after(2)
  }
}

/** Resolves with the first such event of a stream, or of the reader of its lines; fails where it closes before, or after `limitMs`. */
export async function heard(source: EventEmitter, event: string, limitMs = 60_000): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  source.once(event, () => resolve()).once('close', () => reject(new Error('it ended without an answer')))
  await within(limitMs, 'an answer', promise)
}

/** What that promise does, or an error after `limitMs` that names what was waited for. */
export async function within<T>(limitMs: number, what: string, waitedFor: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`not within ${limitMs / 1000} s: ${what}`)), limitMs)
  return await Promise.race([waitedFor, promise]).finally(() => clearTimeout(timer))
}
