// What was admitted and lasts, looked at again: why it may not go on by what holds now, on record and told.
import { isStill } from '../../call/decide.ts'
import type { Recorder } from '../../call/ports.ts'
import type { Ledger } from '../../call/ledger.ts'
import { SallyportError } from '../../errors.ts'
import type { Decision } from '../../schema/gate.ts'
import type { Admission } from '../../schema/governor.ts'
import type { Emit } from '../../supervisor/ports.ts'
import { event } from './failure-events.ts'

export interface LastingPorts {
  readonly ledger: Pick<Ledger, 'hold'>
  readonly recorder: Pick<Recorder, 'record'>
  readonly emit: Emit
}

/** As `Governor.lasts`, by what the rules and lists of that policy say of the request now. */
export function lasts(
  { ledger, recorder, emit }: LastingPorts,
  { call, server, subject, principal, lineage, approval, target }: Admission,
  decision: Decision,
  policy: string,
): SallyportError | null {
  const hold = ledger.hold(server, subject, lineage)
  if (hold === null && isStill(decision.action, approval)) return null
  const rule = hold === null ? decision.rule : null
  const why =
    hold === null
      ? decision.reason
      : `the hold ${hold} stands on it, which an operator ends with sallyport release ${hold}`
  const error = new SallyportError(
    'ERR_POLICY_DENIED',
    `what ${server} was to tell by ${subject} ended: ${why}`,
    {
      server,
      subject,
      ...(rule === null ? {} : { rule }),
    },
  )
  const said = { rule, hold, code: error.code, reason: error.message }
  emit(event('subscription/ended', server, { call, subject, ...said }, principal))
  // It has ended whatever becomes of that: the journal's own events tell of a failure.
  recorder.record('subscription.ended', { call, ...target, lineage, policy, ...said }).catch(() => undefined)
  return error
}
