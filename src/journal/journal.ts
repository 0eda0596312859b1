// The one durable store: records in order, durable before their effect, or nothing is called.
import {
  accessSync,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  writeSync,
} from 'node:fs'
import type { SallyportError } from '../errors.ts'
import { BatchBytes } from './batch-bytes.ts'
import { unwritable } from './failures.ts'
import { type Pending, settle } from './pending.ts'
import { type Entry, encodeRecord, type JournalRecord, originOf, type Position } from './record.ts'
import { beginning, expectInPlace, listSegments, readSegment, segmentPath, type Torn } from './segments.ts'
import { replayFrom, type SegmentEnd } from './replay.ts'

/** `write` survives the daemon's death, `fsync` a power loss too. */
export type Durability = 'write' | 'fsync'

export interface JournalOptions {
  readonly directory: string
  readonly key: Uint8Array
  /** Id of this life of the daemon, in every record */
  readonly daemon: string
  readonly durability: Durability
  /** A segment is closed once it is longer, bytes */
  readonly segmentBytes: number
  /** Sees every record that is already there behind `from`, in order, before `open` returns */
  readonly replay: (record: JournalRecord) => void
  /** A segment's end that whoever replays knows everything of; null for the beginning */
  readonly from?: SegmentEnd | null
  /** Told where a segment ended that nothing is added to any more */
  readonly closed?: (end: SegmentEnd) => void
  /** A segment is closed once it is older, ms */
  readonly segmentMs?: number
  /** JSON members of every segment's first record */
  readonly about?: Readonly<Record<string, unknown>>
  /** Told when writing begins to fail, and with null when it works again */
  readonly health?: (failure: SallyportError | null) => void
  /** Clock of the `at` member */
  readonly now?: () => Date
}

interface Segment {
  readonly number: number
  readonly fd: number
  readonly ino: number
  readonly openedMs: number
  length: number
  /** Its last MAC; empty before the first */
  mac: string
}

/**
 * An append-only journal: hash-chained, MAC'd by batch, in segments.
 *
 * Records that are appended in one turn of the event loop are one batch: one write, and with `fsync` one sync.
 * A batch that cannot be made durable is taken back whole and every append of it rejects with `ERR_JOURNAL`
 * (MP-FH-010); the next append tries again, so calls resume when the disk is mended.
 */
export class Journal implements AsyncDisposable {
  readonly #options: JournalOptions
  #segment: Segment | null = null
  #head: Position
  #waiting: Pending[] = []
  readonly #bytes = new BatchBytes()
  #isScheduled = false
  #syncing: Promise<void> | null = null
  #isClosed = false
  #isFailing = false
  /** Whoever waits for news; null while nobody does */
  #movement: PromiseWithResolvers<void> | null = null
  #torn: Torn | null

  private constructor(options: JournalOptions, head: Position, torn: Torn | null) {
    this.#options = options
    this.#head = head
    this.#torn = torn
  }

  /**
   * Reads what is there behind `from`, checks every record, and begins a new segment.
   *
   * A torn end is kept where it lies; the new segment's first record tells of it. A flaw elsewhere is refused:
   * @throws ERR_JOURNAL_CORRUPT with segment, line and what is wrong
   */
  static open(options: JournalOptions): Journal {
    const { directory, key, replay, from = null } = options
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const end = replayFrom(directory, key, from, replay)
    if (end !== null && end !== from) options.closed?.(end)
    const [head, torn] = [end?.position ?? beginning, end?.torn ?? null]
    const journal = new Journal(options, head, torn)
    journal.#flush()
    return journal
  }

  /** The last durable record. */
  get head(): Position {
    return this.#head
  }

  /** Resolves when there are newer records than at present, or with the signal. */
  async moved({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    if (signal.aborted) return
    this.#movement ??= Promise.withResolvers()
    const { promise, resolve } = this.#movement
    const abort = (): void => resolve()
    signal.addEventListener('abort', abort, { once: true })
    await promise
    signal.removeEventListener('abort', abort)
  }

  /** Resolves once the record is durable, with all appended before it; `folded` is called first, in the records' order. */
  append({ type, body }: Entry, folded: Pending['folded'] = () => undefined): Promise<Position> {
    return new Promise((resolve, reject) =>
      this.add({ type, body, folded, durable: resolve, failed: reject }),
    )
  }

  /** As `append`, for a record that is told itself what becomes of it; never before `add` returns. */
  add(record: Pending): void {
    if (this.#isClosed) return queueMicrotask(() => record.failed(unwritable(this.#options.directory, null)))
    this.#waiting.push(record)
    this.#schedule()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#flush()
    await this.#syncing
    if (this.#segment !== null) closeSync(this.#segment.fd)
    this.#segment = null
  }

  #schedule(): void {
    if (this.#isScheduled || this.#syncing !== null) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  /** Writes what waits as one batch. */
  #flush(): void {
    const batch = this.#waiting
    this.#waiting = []
    let written: readonly Position[]
    try {
      written = this.#write(batch)
    } catch (error) {
      return this.#fail(batch, error)
    }
    if (this.#isFailing) this.#recover()
    if (this.#options.durability === 'write') settle(batch, written)
    else this.#syncing = this.#sync(batch, written)
  }

  /** Group commit: records that come while the disk syncs wait for the next batch. */
  async #sync(batch: readonly Pending[], written: readonly Position[]): Promise<void> {
    const error = await (this.#segment === null ? null : synced(this.#segment.fd))
    try {
      if (error === null) settle(batch, written)
      else {
        // What was written may or may not last: the records stay in the chain, their callers are told no.
        this.#closeSegment()
        this.#fail(batch, error)
      }
    } finally {
      this.#syncing = null
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  #fail(batch: readonly Pending[], error: unknown): void {
    const failure = unwritable(this.#options.directory, error)
    const wasFailing = this.#isFailing
    this.#isFailing = true
    if (!wasFailing) this.#options.health?.(failure)
    for (const record of batch) record.failed(failure)
  }

  #recover(): void {
    this.#isFailing = false
    this.#options.health?.(null)
  }

  #write(entries: readonly Entry[]): readonly Position[] {
    const segment = this.#openSegment()
    if (entries.length === 0) return []
    const positions: Position[] = []
    let [previous, mac] = [this.#head, segment.mac]
    const seal = { key: this.#options.key, after: mac }
    this.#bytes.clear()
    const origin = this.#originOf(segment)
    const last = entries.at(-1)
    for (const entry of entries) {
      const record = encodeRecord(entry, origin, previous, entry === last ? seal : null)
      this.#bytes.add(record.line)
      previous = { seq: record.seq, hash: record.hash }
      positions.push(previous)
      mac = record.mac ?? mac
    }
    this.#writeBytes(segment, this.#bytes.bytes)
    segment.mac = mac
    this.#head = previous
    this.#movement?.resolve()
    this.#movement = null
    return positions
  }

  #writeBytes(segment: Segment, bytes: Buffer): void {
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(segment.fd, bytes, done)
    } catch (error) {
      this.#takeBack(segment)
      throw error
    }
    segment.length += bytes.length
  }

  /** A half-written batch must not stand in the file; where it can't be removed, the next segment tells of it. */
  #takeBack(segment: Segment): void {
    try {
      ftruncateSync(segment.fd, segment.length)
    } catch {
      this.#closeSegment()
      const read = readSegment(this.#options.directory, segment.number, this.#head, null, () => {})
      this.#torn = read.torn
    }
  }

  /**
   * The segment to write to: the open one while it is short enough, else a new one. Where the open one does not stand in its
   * folder any more, nothing can be written: what was written is evidence, and the chain would go on without it.
   */
  #openSegment(): Segment {
    const { directory, segmentBytes, segmentMs = Infinity, closed } = this.#options
    accessSync(directory, constants.W_OK | constants.X_OK)
    if (this.#segment !== null) {
      const { number, length, openedMs } = this.#segment
      expectInPlace(segmentPath(directory, number), this.#segment)
      if (length >= segmentBytes || performance.now() - openedMs > segmentMs) {
        this.#closeSegment()
        closed?.({ segment: number, position: this.#head, offset: length, torn: null })
      }
    }
    const segment = this.#segment ?? this.#newSegment(directory)
    if (segment.length === 0) this.#writeHeader(segment)
    return segment
  }

  #newSegment(directory: string): Segment {
    const number = (listSegments(directory).at(-1) ?? 0) + 1
    const path = segmentPath(directory, number)
    const fd = openSync(
      path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_NOFOLLOW,
      0o600,
    )
    this.#segment = { number, fd, ino: fstatSync(fd).ino, openedMs: performance.now(), length: 0, mac: '' }
    return this.#segment
  }

  #writeHeader(segment: Segment): void {
    const body = JSON.stringify({
      ...this.#options.about,
      continues: this.#head,
      torn: this.#torn,
      durability: this.#options.durability,
    })
    const entry = { type: 'segment.opened', body }
    const seal = { key: this.#options.key, after: '' }
    const record = encodeRecord(entry, this.#originOf(segment), this.#head, seal)
    this.#writeBytes(segment, Buffer.from(record.line))
    segment.mac = record.mac ?? ''
    this.#head = { seq: record.seq, hash: record.hash }
    this.#torn = null
  }

  #originOf({ number }: Segment): string {
    return originOf(this.#options.now?.() ?? new Date(), this.#options.daemon, number)
  }

  #closeSegment(): void {
    if (this.#segment === null) return
    closeSync(this.#segment.fd)
    this.#segment = null
  }
}

const synced = (fd: number): Promise<unknown> => new Promise((resolve) => fdatasync(fd, resolve))
