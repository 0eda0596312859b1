// Whether a journal is what was written: every record, every segment, every torn end, every file beside it accounted for.
import { isMissing } from '../lib/missing.ts'
import { Landmarks } from './landmarks.ts'
import { beginningOf, tornIn } from './opening.ts'
import { accountsFor } from './prune.ts'
import type { JournalRecord, Position } from './record.ts'
import { restIn } from './rest.ts'
import { beginning, listSegments, readSegment, segmentPath, type Torn } from './segments.ts'
import { Sidecars } from './sidecars.ts'
import type { Unusable } from './snapshot.ts'

/** What a verification found. */
export interface Verification {
  readonly ok: boolean
  readonly records: number
  readonly segments: number
  /** Files beside the journal that records name, each read and held against its digest */
  readonly sidecars: number
  readonly head: Position
  /** Where the chain begins: nowhere, or behind the last record that `journal.keep_days` had removed */
  readonly begins: Position
  /** Ends that a crash or a full disk cut off, each told of by the segment after it, or at the very end */
  readonly torn: readonly Torn[]
  /** Records that tell of a start that found less than there had been, up to record `lost`; or, where that is null, no head file that could tell */
  readonly shortened: readonly {
    readonly seq: number
    readonly at: string
    readonly lost: number | null
    readonly reason: string
  }[]
  /** Snapshots that no start can use: it reads the records that they add up instead */
  readonly unusable: readonly Unusable[]
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

/** What is known of the journal beside itself. */
export interface Known {
  /** A place that was exported, and kept elsewhere */
  readonly anchor?: Position | null
  /** The last record of the daemon that runs */
  readonly head?: Position | null
}

type Flaw = NonNullable<Verification['flaw']>

const limit =
  'records of the last 100 ms before a daemon was killed can be cut off without a trace; so can an end whose head file was taken back with it, which only an anchor kept elsewhere shows'
const unsealed =
  'there is no key, so no MAC was checked: whoever could write the journal could have rewritten it'

/**
 * Reads the whole journal in `directory`; with a key the MACs are checked too. Where its beginning is let go of meanwhile, as
 * `journal.keep_days` says, what is missing since then may be that, and what is left is read anew.
 */
export function verifyJournal(directory: string, key: Uint8Array | null, known: Known = {}): Verification {
  const [first] = listSegments(directory)
  const isThere = (): boolean => listSegments(directory)[0] === first
  const { anchor = null, head = null } = known
  try {
    const landmarks = new Landmarks(directory, key, { anchor, head })
    const found = new Reading(directory, key, landmarks).read()
    if (found.ok || isThere()) return found
  } catch (error) {
    if (!isMissing(error) || isThere()) throw error
  }
  return verifyJournal(directory, key, known)
}

class Reading {
  readonly #directory: string
  readonly #key: Uint8Array | null
  readonly #landmarks: Landmarks
  readonly #sidecars: Sidecars
  readonly #segments: readonly number[]
  readonly #first: number
  readonly #begins: Position
  readonly #torn: Torn[] = []
  readonly #shortened: Verification['shortened'][number][] = []
  #head: Position
  #isAccounted: boolean
  /** False until something was read of the segment that follows on what was let go of, the end of which is not known */
  #isContinued: boolean
  /** What the next segment has to tell of */
  #told: Torn | null = null

  constructor(directory: string, key: Uint8Array | null, landmarks: Landmarks) {
    this.#directory = directory
    this.#key = key
    this.#landmarks = landmarks
    this.#sidecars = new Sidecars(directory)
    this.#segments = listSegments(directory)
    this.#first = this.#segments[0] ?? 1
    this.#isAccounted = this.#first === 1
    this.#isContinued = this.#isAccounted
    this.#begins = this.#isAccounted ? beginning : (beginningOf(directory, this.#first) ?? beginning)
    this.#head = this.#begins
    landmarks.pass(this.#begins)
  }

  read(): Verification {
    const flaw = this.#flaw()
    return {
      ok: flaw === null,
      records: this.#head.seq - this.#begins.seq,
      segments: this.#segments.length,
      sidecars: this.#sidecars.count,
      head: this.#head,
      begins: this.#begins,
      torn: this.#torn,
      shortened: this.#shortened,
      unusable: this.#landmarks.unusable,
      flaw,
      limit: this.#key === null ? `${unsealed}; ${limit}` : limit,
    }
  }

  #flaw(): Flaw | null {
    for (const segment of this.#segments) {
      const flaw = this.#segment(segment)
      if (flaw !== null) return flaw
    }
    if (!this.#isAccounted) {
      const detail = `the journal begins with record ${this.#begins.seq + 1}, and no record in it says that what came before was let go`
      return { path: segmentPath(this.#directory, this.#first), line: 1, kind: 'beginning', detail }
    }
    const lacking = this.#landmarks.lacking(this.#begins)
    return lacking === null ? null : { ...lacking, line: 0 }
  }

  #segment(segment: number): Flaw | null {
    const path = segmentPath(this.#directory, segment)
    let opening: unknown = null
    let beside: Flaw | null = null
    const visit = (record: JournalRecord, line: number): void => {
      opening ??= record.type === 'segment.opened' ? record.body : 'other'
      beside ??= this.#record(record, path, line)
    }
    const mayBeRest = restIn(this.#directory, segment, () => this.#landmarks.known)
    const read = readSegment(this.#directory, segment, this.#head, this.#key, visit, mayBeRest)
    this.#head = read.end
    if (beside !== null) return beside
    if (read.flaw !== null)
      return { path, line: read.flaw.line, kind: read.flaw.kind, detail: read.flaw.detail }
    const says = JSON.stringify(tornIn(opening))
    if (opening !== null && this.#isContinued && says !== JSON.stringify(this.#told)) {
      const detail = `the segment tells of ${says} before it, found ${JSON.stringify(this.#told)}`
      return { path, line: 1, kind: 'torn', detail }
    }
    this.#isContinued ||= opening !== null || read.torn !== null
    this.#told = read.torn ?? (opening === null ? this.#told : null)
    if (read.torn !== null) this.#torn.push(read.torn)
    return null
  }

  #record(record: JournalRecord, path: string, line: number): Flaw | null {
    this.#landmarks.visit(record)
    if (record.type === 'journal.pruned')
      this.#isAccounted ||= accountsFor(record.body, this.#first - 1, this.#begins)
    if (record.type === 'journal.shortened') {
      const { lost, reason } = Object(record.body) as { lost: Position | null; reason: string }
      this.#shortened.push({
        seq: record.seq,
        at: record.at,
        lost: lost?.seq ?? null,
        reason,
      })
    }
    const detail = this.#sidecars.flawOf(record.body)
    return detail === null
      ? null
      : { path, line, kind: 'evidence', detail: `record ${record.seq}: ${detail}` }
  }
}
