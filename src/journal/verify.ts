// Whether a journal is what was written: every record, every segment, every torn end accounted for.
import { beginning, listSegments, readSegment, segmentPath, type Torn } from './segments.ts'
import type { Position } from './record.ts'

/** What a verification found. */
export interface Verification {
  readonly ok: boolean
  readonly records: number
  readonly segments: number
  readonly head: Position
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
  let head = beginning
  let told: Torn | null = null
  let anchored = anchor === null || anchor.seq === 0
  const torn: Torn[] = []
  const segments = listSegments(directory)
  const result = (flaw: Verification['flaw']): Verification => ({
    ok: flaw === null,
    records: head.seq,
    segments: segments.length,
    head,
    torn,
    flaw,
    limit,
  })
  for (const segment of segments) {
    const path = segmentPath(directory, segment)
    let opening: unknown = null
    const read = readSegment(directory, segment, head, key, (record) => {
      opening ??= record.type === 'segment.opened' ? record.body : 'other'
      if (anchor?.seq === record.seq && anchor.hash === record.hash) anchored = true
    })
    if (read.flaw !== null) {
      head = read.end
      return result({ path, line: read.flaw.line, kind: read.flaw.kind, detail: read.flaw.detail })
    }
    const says = tornOf(opening)
    if (opening !== null && JSON.stringify(says) !== JSON.stringify(told))
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
  if (!anchored && anchor !== null)
    return result({
      path: directory,
      line: 0,
      kind: 'anchor',
      detail: `record ${anchor.seq} with hash ${anchor.hash} is not in the journal: it was cut off or rewritten`,
    })
  return result(null)
}

const tornOf = (opening: unknown): Torn | null =>
  typeof opening === 'object' && opening !== null && 'torn' in opening ? (opening.torn as Torn | null) : null
