// The operator's answers: questions that wait, approvals that stand, and the subscription that makes calls wait at all.
import { noOf } from '../../call/no.ts'
import type { StandingApproval } from '../../call/standing-approval.ts'
import type { Permit } from '../../call/permit.ts'
import { SallyportError } from '../../errors.ts'
import { passedMs } from '../../lib/passed.ts'
import type { PendingApproval } from '../../rpc/approvals.ts'
import type { OperatorMethods } from '../../rpc/protocol.ts'
import { actor } from '../governance/actor.ts'
import { pendingView } from '../governance/approval-events.ts'
import { feedApprovals } from '../approval-feed.ts'
import type { EventLog } from '../events.ts'
import { allTheSame } from '../governance/consequences.ts'
import type { Governance } from '../governance/governance.ts'
import { turnsByName } from '../turns.ts'
import type { MethodCall, MethodTable } from './methods.ts'

type Methods = `approvals/${'list' | 'text' | 'approve' | 'deny' | 'subscribe'}`

export interface ApprovalPorts {
  readonly governance: Governance
  readonly events: EventLog
}

/**
 * The methods of operator.sock about approvals. What an operator says is recorded before it has effect, save that no call is sent by
 * a yes that is taken back, from then on; of what several say of one question, each finds what the one before it came to, or a no
 * could be on record and the yes beside it stand.
 */
export function approvalMethods({ governance, events }: ApprovalPorts): MethodTable<Methods> {
  const { approvals, permits, recorder } = governance
  const inTurnOf = turnsByName()
  /** Questions that somebody said no to, and that could not be recorded: they wait on, whatever is said to equal ones */
  const unheard = new Set<string>()
  return {
    'approvals/list': () => ({
      pending: approvals.pending().map(pendingView),
      standing: approvals.standing().map((approval) => ({
        id: approval.id,
        scope: approval.scope,
        identity: approval.identity,
        arguments_digest: approval.argumentsDigest,
        repeat_digest: approval.repeatDigest,
        principal: approval.principal,
        session: approval.session,
        by: approval.by,
        expires_in_ms: Math.round(approval.expiresAt - passedMs()),
      })),
      listeners: governance.listeners,
    }),
    'approvals/text'({ id, offset = 0 }) {
      const piece = approvals.text(id, offset)
      if (piece === null) throw notWaiting(id)
      return { id, ...piece }
    },
    'approvals/approve': ({ id, scope = 'once' }, { caller }) =>
      inTurnOf(id, async () => {
        const said = { ...aboutQuestion(governance, id), scope, ...actor(caller) }
        const drafted = scope === 'once' ? null : approvals.draft(id, scope, caller.principal.id)
        // One batch: what stands was granted, and what was granted to stand does.
        const records = [recorder.record('approval.granted', said)]
        if (drafted !== null) records.push(recorder.record('approval.standing', storedApproval(drafted)))
        await Promise.all(records).catch((error: unknown) => {
          approvals.drop(drafted)
          throw error
        })
        unheard.delete(id)
        if (!approvals.approve(id, caller.principal.id, drafted)) throw notWaiting(id)
        // Whoever is saying no to one of them is heard first.
        for (const other of drafted === null ? [] : approvals.coveredBy(drafted))
          void inTurnOf(other, async () => unheard.has(other) || approvals.cover(other))
        return { id, scope }
      }),
    'approvals/deny': ({ id, reason = '' }, { caller }) =>
      inTurnOf(id, async () => {
        const by = actor(caller)
        const standsOn = ({ binding }: Permit): boolean => binding.approval === id
        const stands = approvals.standing().find((standing) => standing.id === id)
        // A yes to one call stands until that is sent: it has no permit yet, or waits for its process.
        if (stands !== undefined || approvals.isGiven(id) || permits.some(standsOn)) {
          // At once, and whatever becomes of the record: what only takes away waits for no disk.
          const end = { by: by.by, reason }
          approvals.void((standing) => 'id' in standing && standing.id === id, end)
          approvals.withdraw(id, stands?.scope ?? 'once', reason, caller.principal.id)
          permits.revoke(standsOn, { reason: noOf(reason, caller.principal.id).reason, isNo: true })
          await allTheSame(recorder.record('approval.revoked', { id, ...by, reason }))
          return { id }
        }
        const said = { ...aboutQuestion(governance, id), ...by, reason }
        unheard.add(id)
        await recorder.record('approval.denied', said)
        unheard.delete(id)
        if (!approvals.deny(id, reason, caller.principal.id)) throw notWaiting(id)
        return { id }
      }),
    'approvals/subscribe': (_params, call) => subscribe({ governance, events }, call),
  }
}

/** From the answer on, until the connection ends, questions wait; the questions that wait already come with the answer. */
function subscribe(
  { governance, events }: ApprovalPorts,
  call: MethodCall,
): OperatorMethods['approvals/subscribe']['result'] {
  const { seq } = events
  const pending = (): readonly PendingApproval[] => governance.approvals.pending().map(pendingView)
  const waiting = pending()
  call.afterReply(async (stream) => {
    try {
      const known = waiting.map(({ id }) => id)
      await feedApprovals({ events, pending }, { seq, known }, call.caller, stream)
    } finally {
      stop()
    }
  })
  const stop = governance.listen() // once there is room for it to be told
  return { subscribed: true, pending: waiting }
}

/** An approval as it is recorded: on the wall clock, which outlives the daemon. */
function storedApproval({ expiresAt, ...approval }: StandingApproval): Readonly<Record<string, unknown>> {
  const leftMs = expiresAt - passedMs()
  const nowMs = Date.now()
  const at = (ms: number): string => new Date(ms).toISOString()
  return { ...approval, granted_at: at(nowMs), expires_at: at(nowMs + leftMs) }
}

/** What the record of an answer says of its question. */
function aboutQuestion({ approvals }: Governance, id: string): Readonly<Record<string, unknown>> {
  const question = approvals.pending().find((pending) => pending.id === id)
  if (question === undefined) throw notWaiting(id)
  const { call, identity, principal, session, argumentsDigest, bytesDigest } = question
  return {
    id,
    call,
    identity,
    principal,
    session,
    arguments_digest: argumentsDigest,
    bytes_digest: bytesDigest,
  }
}

const notWaiting = (id: string): SallyportError =>
  new SallyportError(
    'ERR_APPROVAL_NOT_FOUND',
    `no question ${id} waits: it was answered, its time is over, its caller went away, or what it was for has changed; see sallyport approvals`,
    { id },
  )
