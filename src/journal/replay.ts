// Reading a journal from a place in it to its end, every record checked against the one before.
import { corrupt, unreadable } from './failures.ts'
import { readHead } from './head-file.ts'
import type { JournalRecord, Position } from './record.ts'
import { restIn } from './rest.ts'
import { beginning, endsSo, listSegments, readSegment, type SegmentEnd, segmentPath } from './segments.ts'

/**
 * Visits every sealed record behind `from`, in order. Returns where the journal ends, null where there is none.
 *
 * @throws ERR_JOURNAL where a segment can't be read, ERR_JOURNAL_CORRUPT with segment, line and what is wrong, also where `from` is not a place in this journal
 */
export function replayFrom(
  directory: string,
  key: Uint8Array,
  from: SegmentEnd | null,
  visit: (record: JournalRecord) => void,
): SegmentEnd | null {
  const segments = listSegments(directory).filter((segment) => segment > (from?.segment ?? 0))
  if (segments.length === 0 && from !== null && !endsSo(directory, from))
    throw corrupt(directory, from.segment, 0, `it does not end with record ${from.position.seq}`)
  const [first] = segments
  if (from === null && first !== undefined && first > 1)
    throw corrupt(directory, first, 1, 'what came before was let go of, and no snapshot of it can be used')
  let end = from
  for (const segment of segments) {
    const mayBeRest = restIn(directory, segment, () => headOf(directory, key))
    const read = readSegment(directory, segment, end?.position ?? beginning, key, visit, mayBeRest)
    if (read.flaw?.kind === 'unreadable') throw unreadable(segmentPath(directory, segment), read.flaw.cause)
    if (read.flaw !== null) throw corrupt(directory, segment, read.flaw.line, read.flaw.detail)
    // A segment without a first record has told of nothing yet.
    const untold = read.offset === 0 ? (end?.torn ?? null) : null
    end = { segment, position: read.end, offset: read.offset, torn: read.torn ?? untold }
  }
  return end
}

/** Where the journal had been when that was last written down, if it was. */
function headOf(directory: string, key: Uint8Array): readonly Position[] {
  const head = readHead(directory, key)
  return head !== null && 'seq' in head ? [head] : []
}
