// A host that has said all, and still reads: its session goes on until it has what it waits for.
import { setTimeout as delay } from 'node:timers/promises'
import { SallyportError } from '../../errors.ts'
import { nowMs } from '../../lib/clock.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { soon } from '../../lib/deadline.ts'
import { hostLeft } from '../instance/process-end.ts'
import type { SessionBoundary } from './boundary.ts'

/** The way to a host that reads, and from a server that listens. */
interface Line {
  stillReads(): Promise<boolean>
  endInput(): void
}

/** Time between two looks at whether the host is still there, ms */
const lookMs = 50

/**
 * What is held is decided first, since a server may have to be asked for that; then its input ends, as it would without us;
 * not that of a process beside which others answer, whose end would be the session's.
 * Resolves when the host waits for nothing any more, `call_ms` after that at the latest; or when it does not read, and what it
 * said is decided or has had `eof_ms` for that. For one that does not read nobody is asked: a late yes would send what nobody waits for.
 */
export async function lastAnswers(
  line: Line | null,
  boundary: Pick<SessionBoundary, 'isWaiting' | 'isAwaited' | 'leave' | 'decided'>,
  { timeouts, stop, instance }: Pick<ServerSettings, 'timeouts' | 'stop' | 'instance'>,
): Promise<void> {
  if (line === null) return
  while (boundary.isWaiting && (await line.stillReads())) await delay(lookMs)
  boundary.leave(new SallyportError('ERR_CALL_CANCELLED', hostLeft))
  await soon(boundary.decided(), stop.eofMs)
  if (instance === 'session') line.endInput()
  const until = nowMs() + timeouts.callMs
  while (boundary.isAwaited && nowMs() < until && (await line.stillReads())) await delay(lookMs)
}
