// In the daemon's log: that its journal takes nothing any more, and that it does again. Nothing is called in between, and whoever
// follows no events would look for the reason there.
import type { Logger } from '../lib/logger.ts'
import type { Happening } from '../supervisor/ports.ts'

/** Logs an event where it is of the journal's health; every other one passes. */
export function tellHealth(log: Pick<Logger, 'error' | 'info'>, { type, detail }: Happening): void {
  const { code, reason } = detail
  if (type === 'journal/failed') log.error({ code, reason }, 'journal can not be written')
  if (type === 'journal/mended') log.info({}, 'journal can be written again')
}
