// A bug that ended one session, or made one process useless, in the daemon's log: where it showed, and what it said without what must
// not be kept.
import type { Confided } from '../credentials/confided.ts'
import type { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Happening } from '../supervisor/ports.ts'
import { discreet } from './redactor.ts'

/** What a bug says may be what a host, a server or a person said; its stack is ours. `log` conceals what credentials hold. */
export function tellBug(
  log: Pick<Logger, 'error'>,
  event: Happening,
  { cause }: SallyportError,
  confided: Pick<Confided, 'of'>,
): void {
  const isError = cause instanceof Error
  const said = isError ? `${cause.name}: ${cause.message}` : String(cause)
  const frames = isError ? (cause.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : []
  const { type, server, detail } = discreet({ ...event, detail: { ...event.detail, said } }, confided)
  log.error({ server, ...detail, stack: frames.join('\n') }, type)
}
