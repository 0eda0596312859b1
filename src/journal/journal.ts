// The one durable store: records in order, durable before their effect, or nothing is called.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { SallyportError } from '../errors.ts'
import { makeFolder } from '../lib/folder.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { isRefused, unmakeable, unreadable, unverifiable, unwritable } from './failures.ts'
import { type Pending, type Place, settle } from './pending.ts'
import type { Entry, JournalRecord, Position } from './record.ts'
import { replayFrom } from './replay.ts'
import { beginning, isTooLong, type SegmentEnd, throughDescriptor } from './segments.ts'
import type { Newest } from './newest.ts'
import { Tail, type TailOptions } from './tail.ts'
import { UncutNote } from './uncut.ts'

export interface JournalOptions extends TailOptions {
  /** Sees every record that is already there behind `from`, in order, before `open` returns */
  readonly replay: (record: JournalRecord) => void
  /** A segment's end that whoever replays knows everything of; null for the beginning */
  readonly from?: SegmentEnd | null
  /** Told when writing begins to fail, and with null when it works again */
  readonly health?: (failure: SallyportError | null) => void
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
  readonly #tail: Tail
  #waiting: Pending[] = []
  #isScheduled = false
  #syncing: Promise<void> | null = null
  #isClosed = false
  #isFailing = false
  /** Whoever waits for news; null while nobody does */
  #movement: PromiseWithResolvers<void> | null = null

  private constructor(options: JournalOptions, tail: Tail) {
    this.#options = options
    this.#tail = tail
  }

  /**
   * Reads what is there behind `from`, checks every record, and begins a new segment.
   *
   * A torn end, and what else a loss of power left there, is kept where it lies; the new segment's first record tells of it. A flaw elsewhere is refused:
   * @throws ERR_JOURNAL_CORRUPT with segment, line and what is wrong; ERR_JOURNAL where it can't be read
   */
  static open(options: JournalOptions): Journal {
    const { from = null } = options
    const end = readAll(options)
    if (end !== null && end !== from) options.closed?.(end)
    const journal = new Journal(options, new Tail(options, end?.position ?? beginning, end?.torn ?? null))
    journal.#flush()
    return journal
  }

  /** The last durable record. */
  get head(): Position {
    return this.#tail.head
  }

  /** The last records that are durable, while somebody follows. */
  get newest(): Newest {
    return this.#tail.newest
  }

  /** Nothing that is written beside it now may look older than this: it would go with segments from before. */
  get changedMs(): number {
    return this.#tail.changedMs
  }

  /** Resolves when there are newer records than at present, or with the signal. */
  async moved({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    if (signal.aborted) return
    this.#movement ??= Promise.withResolvers()
    // Its own: who waits no longer wakes nobody else, and the others would find nothing new for ever.
    const { promise: aborted, resolve } = Promise.withResolvers<void>()
    const abort = (): void => resolve()
    signal.addEventListener('abort', abort, { once: true })
    await Promise.race([this.#movement.promise, aborted])
    signal.removeEventListener('abort', abort)
  }

  /** Resolves once the record is durable, with all appended before it; `folded` is called first, in the records' order. */
  append({ type, body }: Entry, folded: Pending['folded'] = () => undefined): Promise<Place> {
    return new Promise((resolve, reject) =>
      this.add({ type, body, folded, durable: resolve, failed: reject }),
    )
  }

  /** As `append`, for a record that is told itself what becomes of it; never before `add` returns. */
  add(record: Pending): void {
    if (this.#isClosed) return queueMicrotask(() => record.failed(unwritable(this.#options.directory, null)))
    this.#waiting[this.#waiting.length] = record // `push` would be a call
    this.#schedule()
  }

  /**
   * Its folder, opened: what is made by way of the descriptor is made beside the segments, wherever they are moved.
   *
   * Throws what the file system throws, also where another folder stands in its place.
   */
  async folder(): Promise<FileHandle> {
    const folder = await open(this.#options.directory, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      this.#tail.expectIn(throughDescriptor(folder))
      return folder
    } catch (error) {
      await folder.close()
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#syncing
    this.#flush()
    await this.#syncing
    this.#tail.close()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#syncing !== null) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  /** Writes what waits as one batch, unless one is being synced: then whoever syncs it goes on with what waits. */
  #flush(): void {
    if (this.#syncing !== null) return
    const batch = this.#waiting
    this.#waiting = []
    try {
      this.#tail.write(batch)
    } catch (error) {
      return this.#fail(batch, error)
    }
    if (this.#options.durability === 'write') this.#keep(batch)
    else this.#syncing = this.#sync(batch)
  }

  /** Group commit: records that come while the disk syncs wait for the next batch. */
  async #sync(batch: readonly Pending[]): Promise<void> {
    try {
      const error = await this.#tail.sync().then(
        () => null,
        (reason: unknown) => reason ?? new Error('unknown'),
      )
      if (error === null) this.#keep(batch)
      else {
        // What was written may or may not last. Its callers are told no, so it must not come true with the next start.
        this.#tail.takeBack()
        this.#fail(batch, error)
      }
    } finally {
      this.#syncing = null
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  #keep(batch: readonly Pending[]): void {
    this.#tail.keep()
    if (batch.length > 0) this.#tellMoved()
    if (this.#isFailing) this.#recover()
    settle(batch, this.#tail.head.seq - batch.length + 1)
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

  #tellMoved(): void {
    this.#movement?.resolve()
    this.#movement = null
  }
}

/** Where what is there ends, once what does not count was cut off. */
function readAll({ directory, key, replay, from = null, notes = [] }: JournalOptions): SegmentEnd | null {
  make(directory)
  try {
    new UncutNote(notes, key).settle(directory)
    return replayFrom(directory, key, from, replay)
  } catch (error) {
    if (isTooLong(error)) throw unverifiable(error)
    throw isRefused(error) ? unreadable(directory, error) : error
  }
}

function make(directory: string): void {
  try {
    makeFolder(directory, 0o700)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === null || isShortage(error)) throw error
    throw unmakeable(directory, errno, error)
  }
}
