// Where the journal grows: the segment that is written to, and each batch as one write at its end.
import {
  accessSync,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  statSync,
  writeSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { BatchBytes } from './batch-bytes.ts'
import { Newest } from './newest.ts'
import { type Entry, layOutBatch, originOf, type Position } from './record.ts'
import { UncutNote } from './uncut.ts'
import {
  expectInPlace,
  listSegments,
  readSegment,
  type SegmentEnd,
  segmentPath,
  type Torn,
} from './segments.ts'

/** `write` survives the daemon's death, `fsync` a power loss too. */
export type Durability = 'write' | 'fsync'

export interface TailOptions {
  readonly directory: string
  readonly key: Uint8Array
  /** Id of this life of the daemon, in every record */
  readonly daemon: string
  readonly durability: Durability
  /** A segment is closed once it is longer, bytes */
  readonly segmentBytes: number
  /** A segment is closed once it is older, ms */
  readonly segmentMs?: number
  /** Told where a segment ended that nothing is added to any more */
  readonly closed?: (end: SegmentEnd) => void
  /** JSON members of every segment's first record */
  readonly about?: Readonly<Record<string, unknown>>
  /** Where it is noted what could not be cut off: files on disks that may fail independently */
  readonly notes?: readonly string[]
  /** Clock of the `at` member */
  readonly now?: () => Date
}

interface Segment {
  readonly number: number
  readonly path: string
  readonly fd: number
  readonly ino: number
  readonly openedMs: number
  /** What its first record hangs on */
  readonly begins: Position
  /** What its first record tells of */
  readonly tells: Torn | null
  length: number
  /** Its last MAC; empty before the first */
  mac: string
  /** What of it counts; the same as what was written, but for a batch that is being synced */
  kept: { readonly length: number; readonly mac: string; readonly head: Position }
}

/** Each method throws what the file system throws; a batch that could not be written, or synced, is taken back whole. */
export class Tail {
  readonly #options: TailOptions
  #segment: Segment | null = null
  /** The segment that was closed and has no next one yet, which is made beside it or nowhere */
  #lastPath: string | null = null
  #head: Position
  /** The last records that count, while somebody follows */
  readonly newest = new Newest()
  readonly #bytes = new BatchBytes()
  /** Number of the record before those that `#bytes` holds, once the last `write` has written them */
  #written: number | null = null
  #torn: Torn | null
  /** The open segment holds more than counts, which must be gone before anything is added */
  #isBehind = false
  readonly #uncut: UncutNote
  #endedMs = 0
  /** A segment behind whose records stands what could neither be written nor taken back */
  #broken: Segment | null = null

  /** Goes on behind `head`; the first segment's first record tells of `torn`. */
  constructor(options: TailOptions, head: Position, torn: Torn | null) {
    this.#options = options
    this.#uncut = new UncutNote(options.notes ?? [], options.key)
    this.#head = head
    this.#torn = torn
  }

  /** The last record that counts. */
  get head(): Position {
    return this.#segment?.kept.head ?? this.#head
  }

  /** Last change of the segments, the open one included, on the wall clock of its day: the latest one, whatever that clock says now. */
  get changedMs(): number {
    const path = this.#lastWritten
    return path === null ? this.#endedMs : Math.max(this.#endedMs, changedMs(path))
  }

  /** Writes the entries as one batch; with none it opens the segment. It counts once it is kept. */
  write(entries: readonly Entry[]): void {
    this.#written = null
    expectRoom(entries)
    const segment = this.#openSegment()
    if (entries.length > 0) this.#writeBatch(segment, entries)
  }

  /** What was written counts from now on. */
  keep(): void {
    if (this.#segment === null) return
    const { length, mac } = this.#segment
    this.#segment.kept = { length, mac, head: this.#head }
    if (this.#written !== null) this.newest.add(this.#written, this.#bytes.bytes)
  }

  /** What was written survives a loss of power; a new segment's name, too. */
  async sync(): Promise<void> {
    if (this.#segment === null) return
    const { fd, kept } = this.#segment
    await synced(fd)
    if (kept.length > 0) return
    await using folder: FileHandle = await open(this.#options.directory, 'r')
    await folder.sync()
  }

  /**
   * What was written since `keep` does not count, whatever the disk made of it: it is cut off, and where that can't be done
   * nothing is added before it can.
   */
  takeBack(): void {
    const segment = this.#segment
    if (segment === null) return
    const position = this.#head
    segment.length = segment.kept.length
    segment.mac = segment.kept.mac
    this.#head = segment.kept.head
    this.#isBehind = true
    try {
      this.#cutOff(segment)
    } catch {
      // The next write begins with it, and tells what is wrong.
      this.#uncut.write({ segment: segment.number, length: segment.length, position })
    }
  }

  /** Nothing is added to the open segment any more. */
  close(): void {
    if (this.#segment === null) return
    closeSync(this.#segment.fd)
    this.#segment = null
  }

  /** Throws where the segment that is written to, or was last, does not stand in the folder at that path. */
  expectIn(folder: string): void {
    const segment = this.#segment ?? this.#broken
    const path = this.#lastWritten
    if (path === null) return
    const { ino } = lstatSync(join(folder, basename(path)))
    if (segment !== null && ino !== segment.ino) throw new Error(`${path} was replaced: put it back`)
  }

  /** Path of the segment that is written to, or was last while there is no next one. */
  get #lastWritten(): string | null {
    return (this.#segment ?? this.#broken)?.path ?? this.#lastPath
  }

  #writeBatch(segment: Segment, entries: readonly Entry[]): void {
    const origin = originOf(this.#options.now?.() ?? new Date(), this.#options.daemon, segment.number)
    const seal = { key: this.#options.key, after: segment.mac }
    const { seq, hash, mac } = layOutBatch(this.#bytes, entries, origin, this.#head, seal)
    this.#writeBytes(segment, this.#bytes.bytes)
    this.#written = this.#head.seq
    segment.mac = mac
    this.#head = { seq, hash }
  }

  #writeBytes(segment: Segment, bytes: Buffer): void {
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(segment.fd, bytes, done)
    } catch (error) {
      this.#forgetHalf(segment)
      throw error
    }
    segment.length += bytes.length
  }

  #cutOff(segment: Segment): void {
    ftruncateSync(segment.fd, segment.length)
    this.#isBehind = false
    this.#uncut.clear()
  }

  /** A half-written batch must not stand in the file; where it can't be removed, the next segment tells of it. */
  #forgetHalf(segment: Segment): void {
    try {
      this.#cutOff(segment)
    } catch {
      this.#broken = segment
      this.close()
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
      if (this.#isBehind) this.#cutOff(this.#segment)
      const { number, path, length, openedMs } = this.#segment
      expectInPlace(path, this.#segment)
      if (length >= segmentBytes || performance.now() - openedMs > segmentMs) {
        this.close()
        this.#lastPath = path
        closed?.({ segment: number, position: this.#head, offset: length, torn: null })
      }
    }
    if (this.#broken !== null) this.#lookAt(this.#broken)
    const segment = this.#segment ?? this.#newSegment(directory)
    if (segment.length === 0) this.#writeHeader(segment)
    return segment
  }

  /** Finds what a write left that failed: the chain goes on behind all of it that is whole. */
  #lookAt({ number, path, begins, tells }: Segment): void {
    const { directory, key } = this.#options
    const { end, torn, flaw } = readSegment(directory, number, begins, key, () => undefined)
    if (flaw !== null) throw new Error(`${path}:${flaw.line}: ${flaw.detail}`)
    this.#head = end
    this.#torn = torn ?? (end.seq === begins.seq ? tells : null)
    this.#broken = null
  }

  #newSegment(directory: string): Segment {
    if (this.#lastPath !== null) lstatSync(this.#lastPath) // throws where the folder is another one
    const ended = listSegments(directory)
    this.#endedMs = Math.max(this.#endedMs, ...ended.map((one) => changedMs(segmentPath(directory, one))))
    const number = (ended.at(-1) ?? 0) + 1
    const path = segmentPath(directory, number)
    const fd = openSync(
      path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_NOFOLLOW,
      0o600,
    )
    this.#lastPath = null
    const { ino } = fstatSync(fd)
    const openedMs = performance.now()
    const [begins, tells] = [this.#head, this.#torn]
    const kept = { length: 0, mac: '', head: begins }
    this.#segment = { number, path, fd, ino, openedMs, begins, tells, length: 0, mac: '', kept }
    this.#torn = null
    return this.#segment
  }

  #writeHeader(segment: Segment): void {
    const body = JSON.stringify({
      ...this.#options.about,
      continues: this.#head,
      torn: segment.tells,
      durability: this.#options.durability,
    })
    this.#writeBatch(segment, [{ type: 'segment.opened', body }])
  }
}

/** A segment that has its bytes, and a batch more, is still one that can be read at once. */
const mostBatchBytes = 512 * 1024 * 1024
/** What a record has beside its body, bytes */
const besideBytes = 512

/** Throws where the entries would make a segment too long to be read. */
function expectRoom(entries: readonly Entry[]): void {
  const most = entries.reduce((sum, { body }) => sum + 3 * body.length + besideBytes, 0)
  if (most <= mostBatchBytes) return
  const bytes = entries.reduce((sum, { body }) => sum + Buffer.byteLength(body) + besideBytes, 0)
  if (bytes > mostBatchBytes)
    throw new Error(`${bytes} bytes were to be written at once, and ${mostBatchBytes} are the most`)
}

/** 0 for one that was let go of meanwhile. */
const changedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

const synced = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(fd, (error) => (error === null ? resolve() : reject(error))))
