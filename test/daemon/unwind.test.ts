// The way down: every step in reverse, whatever became of one, and a slow one is named while it lasts.
import { afterEach, expect, test, vi } from 'vitest'
import { unwind } from '../../src/daemon/unwind.ts'
import type { Logger } from '../../src/lib/logger.ts'

afterEach(() => void vi.useRealTimers())

/** Keeps what is logged. */
function listener(): { readonly log: Logger; readonly lines: unknown[] } {
  const lines: unknown[] = []
  const keep = (variables: unknown, text?: string): void => void lines.push({ ...Object(variables), text })
  return { lines, log: { debug: keep, info: keep, warn: keep, error: keep } }
}

test('goes on behind a step that fails, and says which it was', async () => {
  const { log, lines } = listener()
  const done: string[] = []
  const step = (what: string) => ({ what, undo: async () => void done.push(what) })
  const refuses = { what: 'second', undo: () => Promise.reject(new Error('stubborn')) }
  await unwind([step('first'), refuses, step('third')], log)
  expect(done).toEqual(['third', 'first'])
  expect(lines).toEqual([expect.objectContaining({ step: 'second', text: 'shutdown step failed' })])
})

test('names a step that takes long, every five seconds while it does', async () => {
  vi.useFakeTimers()
  const { log, lines } = listener()
  const { promise, resolve } = Promise.withResolvers<void>()
  const down = unwind([{ what: 'servers', undo: () => promise }], log)
  await vi.advanceTimersByTimeAsync(11_000)
  expect(lines).toEqual(
    [5_000, 10_000].map((durationMs) =>
      expect.objectContaining({ step: 'servers', durationMs, text: 'shutdown waits' }),
    ),
  )
  resolve()
  await down
  await vi.advanceTimersByTimeAsync(11_000)
  expect(lines).toHaveLength(2)
})
