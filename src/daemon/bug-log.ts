// A bug that ended one session, or made one process useless, in the daemon's log: where it showed, and what it said without what must
// not be kept.
import type { Confided } from '../credentials/confided.ts'
import type { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Happening } from '../supervisor/ports.ts'
import { discreet } from './redactor.ts'

/** What a bug says may be what a host, a server or a person said, which is taken out as it is of events. `log` conceals what credentials hold. */
export function tellBug(
  log: Pick<Logger, 'error'>,
  event: Happening,
  { cause }: SallyportError,
  confided: Pick<Confided, 'of'>,
): void {
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
  const where = cause instanceof Error ? (cause.stack ?? '') : ''
  // What it says may have lines that look like a stack's.
  const stack = where.startsWith(said) ? where.slice(said.length).trim() : ''
  const { type, server, detail } = discreet({ ...event, detail: { ...event.detail, said, stack } }, confided)
  log.error({ server, ...detail }, type)
}
