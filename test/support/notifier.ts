// The stream of a subscriber, whose writes are the test's.
import type { Notifier } from '../../src/rpc/answering.ts'
import { notificationLine } from '../../src/rpc/framing.ts'

/** Hands over the lines of each write; a write is over when they were read. */
export const notifierTo = (signal: AbortSignal, read: (lines: string) => Promise<void>): Notifier => ({
  signal,
  notify: (method, params) => read(notificationLine(method, params)),
  pass: (lines) => read(lines.toString()),
})
