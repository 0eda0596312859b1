// What operators and the journal are told of approvals.
import type { ApprovalHappening } from '../../call/approve.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Emit } from '../../supervisor/ports.ts'
import { event } from './failure-events.ts'
import type { JournalRecorder } from './recorder.ts'

/** Tells operators, and records what no method of theirs has recorded. */
export function tellOperators(
  happening: ApprovalHappening,
  recorder: Pick<JournalRecorder, 'record'>,
  emit: Emit,
): void {
  const record = (type: RecordType, body: Readonly<Record<string, unknown>>): void =>
    // What can't be recorded stands only in memory, and no call that uses it is admitted unrecorded.
    void recorder.record(type, body).catch(() => undefined)
  switch (happening.kind) {
    case 'asked':
      record('approval.asked', { ...happening.pending })
      return emit(event('approval/asked', null, { ...happening.pending }, 'operator'))
    case 'settled':
      return emit(event('approval/settled', null, { id: happening.id, ...happening.answer }, 'operator'))
    case 'ended':
      return record('approval.ended', { ids: happening.ids })
  }
}
