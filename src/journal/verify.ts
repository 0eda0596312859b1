// Whether a journal is what was written: every record, every segment, every torn end accounted for.
import { beginning, listSegments, readSegment, segmentPath, type Torn } from './segments.ts'
import { accountsFor, beginningOf } from './prune.ts'
import type { Position } from './record.ts'

/** What a verification found. */
export interface Verification {
  readonly ok: boolean
  readonly records: number
  readonly segments: number
  readonly head: Position
  /** Where the chain begins: nowhere, or behind the last record that `journal.keep_days` had removed */
  readonly begins: Position
  /** Ends that a crash or a full disk cut off, each told of by the segment after it, or at the very end */
  readonly torn: readonly Torn[]
  /** The first thing that is wrong, or null */
  readonly flaw: {
    readonly path: string
    readonly line: number
    readonly kind: string
    readonly detail: string
  } | null
  /** What a verification can't see */
  readonly limit: string
}

const limit =
  'records cut off behind the last exported anchor leave no trace; compare the head with an anchor kept elsewhere'

/** Reads the whole journal in `directory`; with a key the MACs are checked too. */
export function verifyJournal(
  directory: string,
  key: Uint8Array | null,
  anchor: Position | null = null,
): Verification {
  const torn: Torn[] = []
  const segments = listSegments(directory)
  const [first = 1] = segments
  const begins = first === 1 ? beginning : (beginningOf(directory, first) ?? beginning)
  let head = begins
  let told: Torn | null = null
  let isAccounted = first === 1
  let anchored = anchor === null || anchor.seq === 0 || isSame(anchor, begins)
  const result = (flaw: Verification['flaw']): Verification => ({
    ok: flaw === null,
    records: head.seq - begins.seq,
    segments: segments.length,
    head,
    begins,
    torn,
    flaw,
    limit,
  })
  for (const segment of segments) {
    const path = segmentPath(directory, segment)
    let opening: unknown = null
    const read = readSegment(directory, segment, head, key, (record) => {
      opening ??= record.type === 'segment.opened' ? record.body : 'other'
      if (anchor !== null && isSame(anchor, record)) anchored = true
      if (record.type === 'journal.pruned') isAccounted ||= accountsFor(record.body, first - 1, begins)
    })
    if (read.flaw !== null) {
      head = read.end
      return result({ path, line: read.flaw.line, kind: read.flaw.kind, detail: read.flaw.detail })
    }
    const says = tornOf(opening)
    if (
      opening !== null &&
      (segment !== first || first === 1) &&
      JSON.stringify(says) !== JSON.stringify(told)
    )
      return result({
        path,
        line: 1,
        kind: 'torn',
        detail: `the segment tells of ${JSON.stringify(says)} before it, found ${JSON.stringify(told)}`,
      })
    head = read.end
    told = read.torn ?? (opening === null ? told : null)
    if (read.torn !== null) torn.push(read.torn)
  }
  if (!isAccounted)
    return result({
      path: segmentPath(directory, first),
      line: 1,
      kind: 'beginning',
      detail: `the journal begins with record ${begins.seq + 1}, and no record in it says that what came before was let go`,
    })
  if (anchor !== null && !anchored && anchor.seq < begins.seq)
    return result({
      path: directory,
      line: 0,
      kind: 'anchor',
      detail: `record ${anchor.seq} was let go as journal.keep_days says, so it cannot be compared; the chain begins behind record ${begins.seq}`,
    })
  if (!anchored && anchor !== null)
    return result({
      path: directory,
      line: 0,
      kind: 'anchor',
      detail: `record ${anchor.seq} with hash ${anchor.hash} is not in the journal: it was cut off or rewritten`,
    })
  return result(null)
}

const isSame = (a: Position, b: Position): boolean => a.seq === b.seq && a.hash === b.hash

const tornOf = (opening: unknown): Torn | null =>
  typeof opening === 'object' && opening !== null && 'torn' in opening ? (opening.torn as Torn | null) : null
