// What the journal adds up to, kept: a start from the last snapshot that holds, a new one for each segment that ends, and
// an end for what is older than `journal.keep_days`.
import { SallyportError } from '../../errors.ts'
import { beginHead, headPath, HeadKeeper, readHead, type UnusableHead } from '../../journal/head-file.ts'
import { Journal, type JournalOptions } from '../../journal/journal.ts'
import { type Pruned, pruneJournal } from '../../journal/prune.ts'
import type { Position } from '../../journal/record.ts'
import { beginning, listSegments, type SegmentEnd, throughDescriptor } from '../../journal/segments.ts'
import { removeDrafts } from '../../journal/sidecars.ts'
import {
  coveredSegment,
  keepSnapshots,
  lastOf,
  readSnapshots,
  removeDraft,
  removeRefused,
  type Snapshot,
  type Unusable,
  writeSnapshot,
  snapshotPath,
} from '../../journal/snapshot.ts'
import type { RecordType } from '../../schema/record-type.ts'
import type { Durable } from './recorder.ts'

/** Something that records add up to. */
export interface Foldable {
  fold(record: Durable): void
  /** All of it, as JSON */
  save(): unknown
  /** Becomes what `save` gave, or with null what it is before any record; the snapshot's MAC vouches for the shape */
  load(saved: never): void
}

export interface KeepingOptions extends Omit<JournalOptions, 'replay' | 'from' | 'closed' | 'segmentMs'> {
  readonly keepDays: number
  /** The time by which segments are old; null while it is not to be gone by */
  readonly agesBy: () => Promise<number | null>
  /** By the name that a snapshot gives it */
  readonly folds: Readonly<Record<string, Foldable>>
  /** Makes a record durable; called only after `open` returned */
  readonly record: (type: RecordType, body: Readonly<Record<string, unknown>>) => Promise<unknown>
  /** Told when keeping fails, and of what; the records are there all the same */
  readonly warn: (what: Kept, error: SallyportError) => void
}

/** What is kept beside the records: where they end, what they add up to, and no more of them than `keepDays` asks for. */
export type Kept = 'head' | 'snapshot' | 'pruning'

const dayMs = 86_400_000
const lookMs = 3_600_000

/** That the journal does not have what it had, as its head file knows. */
export interface Shortened {
  /** The place that it had reached; null where the head file is missing, or can't be used */
  readonly lost: Position | null
  /** Where it ended at this start */
  readonly found: Position
  readonly reason: string
}

/** A journal with its snapshots and its head file. Dispose of it instead of the journal. */
export class Keeping implements AsyncDisposable {
  readonly journal: Journal
  /** Snapshots that were passed over at the start, newest first */
  readonly passedOver: readonly Unusable[]
  /** What was missing at the start, to be recorded before `keepHead` forgets of it */
  readonly shortened: Shortened | null
  readonly #options: KeepingOptions
  readonly #timer: NodeJS.Timeout | null
  /** The snapshots of this chain, newest first: the one that the start folded, and those written since */
  #own: readonly SegmentEnd[]
  /** What was passed over and may lie there still */
  #refused: readonly Unusable[]
  /** Last segment that is dispensable though a snapshot should turn out unusable */
  #covered = 0
  #letGo = 0
  #work: Promise<void> = Promise.resolve()
  #isClosing = false
  #head: HeadKeeper | null = null

  private constructor(options: KeepingOptions, passedOver: readonly Unusable[], from: Snapshot | null) {
    this.#options = options
    this.passedOver = passedOver
    this.#refused = passedOver
    this.#own = from === null ? [] : [from]
    const opened = begin(options, from, (end) => this.#closed(end))
    this.journal = opened.journal
    this.shortened = opened.shortened
    this.#timer = options.keepDays === 0 ? null : setInterval(() => this.#prune(), lookMs).unref()
  }

  /**
   * Folds the newest snapshot that holds and the records behind it; without one, all records.
   *
   * @throws ERR_JOURNAL_CORRUPT where even those do not hold together, or, where they are not all there, what the newest lacked
   */
  static open(options: KeepingOptions): Keeping {
    const { directory, key } = options
    const passedOver: Unusable[] = []
    let ofNewest: SallyportError | null = null
    removeDraft(directory)
    removeDrafts(directory)
    for (const candidate of [...readSnapshots(directory, key), null]) {
      if (candidate !== null && 'reason' in candidate) {
        passedOver.push(candidate)
        continue
      }
      try {
        return new Keeping(options, passedOver, candidate)
      } catch (error) {
        if (!isCorrupt(error)) throw error
        // That the beginning was let go of is no news to whoever asks what is wrong with the rest.
        if (candidate === null) throw isBegun(directory) ? error : (ofNewest ?? error)
        ofNewest ??= error
        passedOver.push({ path: snapshotPath(directory, candidate.position.seq), reason: error.message })
      }
    }
    throw new Error('the last candidate is the beginning')
  }

  /** From now on the head is written down. */
  keepHead(): void {
    const { directory, key, warn: tell } = this.#options
    const warn = (error: unknown): void => tell('head', SallyportError.from(error))
    this.#head ??= new HeadKeeper(this.journal, { directory, key, warn })
  }

  /** Of the snapshots that were passed over none stays, now that records tell of them. */
  removePassedOver(): void {
    if (this.#refused.length === 0) return
    this.#then('snapshot', async () => {
      await using folder = await this.journal.folder()
      await removeRefused(throughDescriptor(folder), this.#own, this.#refused)
      this.#refused = []
    })
  }

  /** Number of the last record that `keepDays` let go of in this life, or is about to; 0 where there is none. */
  get letGo(): number {
    return this.#letGo
  }

  /** Resolves when what was begun so far is done. */
  async settled(): Promise<void> {
    await this.#work
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#isClosing = true
    await this.#work
    await this.journal[Symbol.asyncDispose]()
    await this.#head?.[Symbol.asyncDispose]()
  }

  /** The folds are at the segment's end now, and move on with the next record: what they say is taken down at once. */
  #closed(end: SegmentEnd): void {
    if (this.#isClosing) return
    const { folds, directory, key } = this.#options
    const state = JSON.stringify(
      Object.fromEntries(Object.entries(folds).map(([name, fold]) => [name, fold.save()])),
    )
    this.#then('snapshot', async () => {
      await writeSnapshot(directory, key, end, state)
      this.#own = lastOf(end, this.#own)
      this.#covered = coveredSegment(directory, key, this.#own)
      await using folder = await this.journal.folder()
      await keepSnapshots(throughDescriptor(folder), this.#own, this.#refused)
    })
    this.#prune()
  }

  #prune(): void {
    const { directory, keepDays, agesBy, record } = this.#options
    if (keepDays === 0) return
    this.#then('pruning', async () => {
      const now = await agesBy()
      if (now === null) return
      const covered = this.#covered
      const tell = async (pruned: Pruned): Promise<void> => {
        await record('journal.pruned', { ...pruned })
        this.#letGo = pruned.cuts.at(-1)?.seq ?? this.#letGo
      }
      await pruneJournal(directory, { keepDays, covered, now, record: tell })
    })
  }

  #then(what: Kept, work: () => Promise<void>): void {
    this.#work = this.#work
      .then(work)
      .catch((error: unknown) => this.#options.warn(what, SallyportError.from(error)))
  }
}

type Closed = (end: SegmentEnd) => void
type Opened = Pick<Keeping, 'journal' | 'shortened'>

function begin(options: KeepingOptions, from: Snapshot | null, closed: Closed): Opened {
  const { folds, keepDays } = options
  const known = knownHead(options)
  let found = from?.position ?? beginning
  let isReached = 'seq' in known && known.seq <= found.seq
  const saved = (from?.state ?? {}) as Readonly<Record<string, unknown>>
  for (const [name, fold] of Object.entries(folds)) fold.load((saved[name] ?? null) as never)
  const journal = Journal.open({
    ...options,
    from,
    closed,
    segmentMs: keepDays === 0 ? Infinity : dayMs,
    replay: (record) => {
      if (record.hash !== null) found = { seq: record.seq, hash: record.hash }
      isReached ||= 'seq' in known && known.hash === record.hash
      for (const fold of Object.values(folds)) fold.fold(record)
    },
  })
  return { journal, shortened: isReached ? null : shortened(known, found) }
}

/** Where the journal had been; of one that begins now, that is where it begins. */
function knownHead({ directory, key, warn }: KeepingOptions): Position | UnusableHead {
  try {
    beginHead(directory, key)
  } catch (error) {
    warn('head', SallyportError.from(error))
    return beginning
  }
  const known = readHead(directory, key)
  if (known === null)
    return { reason: `${headPath(directory)} is missing, so whether its end was cut off cannot be told` }
  return 'seq' in known ? known : { reason: `its head file is not to be used: ${known.reason}` }
}

function shortened(known: Position | UnusableHead, found: Position): Shortened {
  if ('reason' in known) return { lost: null, found, reason: known.reason }
  const reason = `it had reached record ${known.seq} with hash ${known.hash}, and ends with record ${found.seq}: its end was cut off, or lost with the machine's power`
  return { lost: known, found, reason }
}

const isBegun = (directory: string): boolean => listSegments(directory)[0] === 1

const isCorrupt = (error: unknown): error is SallyportError =>
  error instanceof SallyportError && error.code === 'ERR_JOURNAL_CORRUPT'
