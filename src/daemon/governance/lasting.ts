// What was admitted and lasts, looked at again: why it may not go on by what holds now, on record and told.
import type { Approvals } from '../../call/approve.ts'
import { isStill } from '../../call/decide.ts'
import type { Ledger } from '../../call/ledger.ts'
import { refusals } from '../../call/refusal.ts'
import { type ErrorCode, SallyportError } from '../../errors.ts'
import type { Decision } from '../../schema/gate.ts'
import type { Admission } from '../../schema/governor.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Consequences } from './consequences.ts'
import { event } from './failure-events.ts'

export interface LastingPorts {
  readonly ledger: Pick<Ledger, 'hold' | 'live' | 'standing'>
  readonly approvals: Pick<Approvals, 'isRevoked'>
  readonly consequences: Pick<Consequences, 'subscriptionEnded'>
  readonly emit: Emit
}

/** Why something ended. */
interface End {
  readonly code: ErrorCode
  readonly reason: string
  readonly rule?: string | null
  readonly hold?: string
}

/** As `Governor.lasts`, by what the rules and lists of that policy say of the request now. */
export function lasts(
  ports: LastingPorts,
  admission: Admission,
  decision: Decision,
  policy: string,
): SallyportError | null {
  const end = endOf(ports, admission, decision)
  if (end === null) return null
  const { call, server, subject, principal, lineage, target } = admission
  const { code, reason, rule = null, hold = null } = end
  const error = new SallyportError(code, `what ${server} was to tell by ${subject} ended: ${reason}`, {
    server,
    subject,
    ...(rule === null ? {} : { rule }),
  })
  const said = { rule, hold, code, reason: error.message }
  ports.emit(event('subscription/ended', server, { call, subject, ...said }, principal))
  ports.consequences.subscriptionEnded({ call, ...target, lineage, policy, ...said })
  return error
}

function endOf(
  { ledger, approvals }: LastingPorts,
  { server, instance, kind, subject, lineage, approval }: Admission,
  decision: Decision,
): End | null {
  const code = 'ERR_POLICY_DENIED'
  const hold = ledger.hold(server, subject, lineage)
  if (hold !== null) {
    const mend = `an operator ends with sallyport release ${hold}`
    return { code, hold, reason: `the hold ${hold} stands on it, which ${mend}` }
  }
  if (!isStill(decision.action, approval)) return { code, rule: decision.rule, reason: decision.reason }
  if (approval !== null && approvals.isRevoked(approval))
    return { code, reason: 'an operator took back the approval by which it began' }
  // With a process that is gone its sessions end, and what they are subscribed to, whatever it listed.
  const known = instance === null || ledger.live(instance) === null ? null : instance
  const standing = ledger.standing(server, known, kind, subject)
  return standing.state === 'accepted' ? null : { code: refusals[standing.state], reason: standing.reason }
}
