// What operators and the journal are told of approvals.
import type { ApprovalHappening, QuestionEnd } from '../../call/approve.ts'
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
    case 'asked':
      // What can't be recorded stands only in memory, and no call that uses it is admitted unrecorded.
      void recorder.record('approval.asked', { ...happening.pending }).catch(() => undefined)
      return emit(event('approval/asked', null, { ...happening.pending }, 'operator'))
    case 'settled':
      return emit(event('approval/settled', null, { id: happening.id, ...happening.answer }, 'operator'))
    case 'ended':
      return ended(happening.ids, happening)
  }
}
