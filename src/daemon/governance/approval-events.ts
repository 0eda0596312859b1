// What operators and the journal are told of approvals.
import type { ApprovalHappening, PendingApproval, QuestionEnd } from '../../call/approve.ts'
import type * as Wire from '../../rpc/approvals.ts'
import type { Emit } from '../../supervisor/ports.ts'
import { event } from './failure-events.ts'
import type { JournalRecorder } from './recorder.ts'

/** Tells operators, and records what no method of theirs has recorded. */
export function tellOperators(
  happening: ApprovalHappening,
  recorder: Pick<JournalRecorder, 'record'>,
  ended: (ids: readonly string[], end: QuestionEnd) => void,
  emit: Emit,
): void {
  switch (happening.kind) {
    case 'asked': {
      const { waited_ms, ...asked } = pendingView(happening.pending)
      // What can't be recorded stands only in memory, and no call that uses it is admitted unrecorded.
      void recorder.record('approval.asked', asked).catch(() => undefined)
      return emit(event('approval/asked', null, { ...asked, waited_ms }, 'operator'))
    }
    case 'settled':
      return emit(event('approval/settled', null, { id: happening.id, ...happening.answer }, 'operator'))
    case 'withdrawn': {
      const { id, scope, by, reason } = happening
      return emit(event('approval/withdrawn', null, { id, scope, by, reason }, 'operator'))
    }
    case 'ended':
      return ended(happening.ids, happening)
  }
}

/** A question as operators read it, and as it is recorded. */
export const pendingView = (pending: PendingApproval): Wire.PendingApproval => ({
  id: pending.id,
  call: pending.call,
  peer: pending.peer,
  identity: pending.identity,
  principal: pending.principal,
  session: pending.session,
  reason: pending.reason,
  summary: pending.summary,
  text: pending.text,
  next: pending.next,
  length: pending.length,
  arguments_digest: pending.argumentsDigest,
  bytes_digest: pending.bytesDigest,
  waited_ms: pending.waitedMs,
  deadline_ms: pending.deadlineMs,
  ttl_ms: pending.ttlMs,
})
