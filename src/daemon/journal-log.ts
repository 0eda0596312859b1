// In the daemon's log: that its journal takes nothing any more, and that it does again; and what of it a start found cut off, or
// what goes with it can't be used or kept. Whoever follows no events would look for it there.
import type { Logger } from '../lib/logger.ts'
import type { Happening } from '../supervisor/ports.ts'

/** What the journal still works with, and somebody should know of */
const degraded: Readonly<Record<string, string>> = {
  'journal/shortened': 'the end of the journal is missing, or may be',
  'journal/snapshot-refused': 'a snapshot of the journal is not to be used',
  'journal/owed-refused': 'what was owed to the journal is not to be used',
  'journal/not-kept': 'what goes with the journal could not be kept',
}

/** Logs an event where it is of the journal's health; every other one passes. */
export function tellHealth(log: Pick<Logger, 'error' | 'warn' | 'info'>, { type, detail }: Happening): void {
  if (!type.startsWith('journal/')) return
  const { code, reason } = detail
  const words = degraded[type]
  if (words !== undefined) log.warn(detail, words)
  if (type === 'journal/failed') log.error({ code, reason }, 'journal can not be written')
  if (type === 'journal/mended') log.info({}, 'journal can be written again')
}
