// What a start finds wrong with what is kept: told and recorded before anything stands on it.
import { event } from './failure-events.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Keeping } from './keeping.ts'
import type { Inherited } from './owed-file.ts'
import type { JournalRecorder } from './recorder.ts'

/** Snapshots that were passed over, an end that is missing, files of owed facts that can't be used. */
export async function recordFindings(
  keeping: Pick<Keeping, 'passedOver' | 'removePassedOver' | 'shortened'>,
  { refused }: Pick<Inherited, 'refused'>,
  recorder: Pick<JournalRecorder, 'record'>,
  emit: Emit,
): Promise<void> {
  const found = async (told: string, type: RecordType, what: object): Promise<void> => {
    emit(event(told, null, { ...what }))
    await recorder.record(type, { ...what })
  }
  const { passedOver, shortened } = keeping
  for (const snapshot of passedOver) await found('journal/snapshot-refused', 'snapshot.refused', snapshot)
  keeping.removePassedOver()
  if (shortened !== null) await found('journal/shortened', 'journal.shortened', shortened)
  for (const file of refused) await found('journal/owed-refused', 'owed.refused', file)
}
