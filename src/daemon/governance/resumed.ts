// What goes on of an earlier life of the daemon, and what ended with it.
import type { Approvals } from '../../call/approve.ts'
import { passedMs } from '../../lib/passed.ts'
import type { Consequences } from './consequences.ts'
import type { Past } from './past.ts'
import type { JournalRecorder } from './recorder.ts'

/** Who is told. */
interface Resuming {
  readonly recorder: Pick<JournalRecorder, 'record'>
  readonly approvals: Pick<Approvals, 'restore'>
  readonly consequences: Pick<Consequences, 'ended'>
}

const clockIsBehind = 'the clock is behind the record, and nobody knows how far it was put back'

/** Records how the calls ended that nobody saw the end of, and lets stand what has time left. */
export async function resume(past: Past, { recorder, approvals, consequences }: Resuming): Promise<void> {
  for (const outcome of past.unfinished()) await recorder.record('call.outcome', outcome)
  const { standing, over } = past.standing(passedMs())
  for (const one of standing) approvals.restore(one)
  if (over.length > 0) consequences.ended(over, { by: null, reason: clockIsBehind })
}
