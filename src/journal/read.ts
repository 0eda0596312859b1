// Looking into a journal: records in order, from either end, without reading more of it than is asked for.
import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf, isMissing, isShortage } from '../lib/missing.ts'
import { parseJson } from '../lib/parse-json.ts'
import { unaskable } from './failures.ts'
import type { JournalRecord } from './record.ts'
import { numberAt, seek } from './seek.ts'
import { listSegments, segmentFlags, segmentPath } from './segments.ts'

/** Which records are asked for; nothing is verified here, `verifyJournal` does that. */
export interface Query {
  /** Only records with a greater seq */
  readonly after: number
  /** Only records with a smaller seq; null for no limit */
  readonly before: number | null
  readonly limit: number
  /** Most that is found at once, bytes; one record is found however long it is */
  readonly limitBytes: number
  /** The first that match, or the last */
  readonly from: 'oldest' | 'newest'
  readonly matches: (record: JournalRecord) => boolean
}

export interface Found {
  /** Oldest first */
  readonly records: readonly JournalRecord[]
  /** True where `limitBytes` came before `limit`: ask again behind, or before, what was found */
  readonly isCut: boolean
}

const chunkBytes = 262_144
/** What is read of a place that may be all that is wanted */
const nearBytes = 16_384

/**
 * Returns the records that match. A torn end is passed over, also where it holds whole lines: their numbers went to others.
 *
 * Throws ERR_JOURNAL_CORRUPT where something else stands in a segment's place, ERR_JOURNAL where one may not be read.
 */
export async function queryJournal(directory: string, query: Query): Promise<Found> {
  const found: JournalRecord[] = []
  let bytes = 0
  const isForward = query.from === 'oldest'
  const firsts = new Firsts(directory)
  for (const segment of await segmentsFor(directory, query)) {
    await using file = await openSegment(directory, segment)
    if (file === null) continue
    firsts.know(segment, await numberAt(file.handle, 0))
    const end = Math.min(await sealedEnd(file.handle), (await firsts.behind(segment)) - 1)
    const lines = isForward ? linesBehind(file.handle, query.after) : linesBefore(file.handle, query.before)
    for await (const line of lines) {
      const record = recordOf(line)
      if (record === null || record.seq > end) continue
      if (isBeyond(record, query)) return inOrder(found, isForward)
      if (!isInside(record, query) || !query.matches(record)) continue
      bytes += Buffer.byteLength(line)
      if (bytes > query.limitBytes && found.length > 0) return inOrder(found, isForward, true)
      found.push(record)
      if (found.length >= query.limit) return inOrder(found, isForward)
    }
  }
  return inOrder(found, isForward)
}

/** Number of the oldest record that is kept; null where that cannot be read, or nothing is kept. */
export async function oldestKept(directory: string): Promise<number | null> {
  const [first] = listSegments(directory)
  if (first === undefined) return null
  await using file = await openSegment(directory, first)
  return file === null ? null : await numberAt(file.handle, 0)
}

const isInside = ({ seq }: JournalRecord, { after, before }: Query): boolean =>
  seq > after && (before === null || seq < before)

/** True when no later line can match. */
const isBeyond = ({ seq }: JournalRecord, { from, after, before }: Query): boolean =>
  from === 'oldest' ? before !== null && seq >= before : seq <= after

const inOrder = (found: JournalRecord[], isForward: boolean, isCut = false): Found => ({
  records: isForward ? found : found.toReversed(),
  isCut,
})

/** In the order in which they are read; of those that end before what is wanted, none. */
async function segmentsFor(directory: string, { from, after }: Query): Promise<readonly number[]> {
  const segments = listSegments(directory)
  if (from === 'newest') return segments.toReversed()
  let [first, behind] = [0, segments.length]
  while (behind - first > 1) {
    const middle = Math.floor((first + behind) / 2)
    if (await beginsBy(directory, segments[middle] ?? 0, after + 1)) first = middle
    else behind = middle
  }
  return segments.slice(first)
}

/** True when a segment begins at or before `seq`. */
async function beginsBy(directory: string, segment: number, seq: number): Promise<boolean> {
  await using file = await openSegment(directory, segment)
  return file !== null && ((await numberAt(file.handle, 0)) ?? Infinity) <= seq
}

/** The numbers of the first records of the segments that there are, each read once. */
class Firsts {
  readonly #directory: string
  readonly #segments: readonly number[]
  /** Segment -> number of its first record, or null where it has none that can be read */
  readonly #known = new Map<number, number | null>()

  constructor(directory: string) {
    this.#directory = directory
    this.#segments = listSegments(directory)
  }

  know(segment: number, first: number | null): void {
    this.#known.set(segment, first)
  }

  /** Number of the first record behind a segment, which may be one of its torn end too, sealed or not; `Infinity` where none is. */
  async behind(segment: number): Promise<number> {
    const place = this.#segments.indexOf(segment)
    if (place < 0) return Infinity // it has begun since, and is the last
    for (let at = place + 1; at < this.#segments.length; at++) {
      const first = await this.#of(this.#segments[at] ?? 0)
      if (first !== null) return first
    }
    return Infinity
  }

  async #of(segment: number): Promise<number | null> {
    const known = this.#known.get(segment)
    if (known !== undefined) return known
    await using file = await openSegment(this.#directory, segment)
    const first = file === null ? null : await numberAt(file.handle, 0)
    this.know(segment, first)
    return first
  }
}

/** Number of the last record that is sealed, alone or with its batch; 0 where none is. */
async function sealedEnd(file: FileHandle): Promise<number> {
  for await (const line of backward(file, (await file.stat()).size)) {
    const record = recordOf(line)
    if (record !== null && record.mac !== null) return record.seq
  }
  return 0
}

async function openSegment(
  directory: string,
  segment: number,
): Promise<({ readonly handle: FileHandle } & AsyncDisposable) | null> {
  const path = segmentPath(directory, segment)
  const handle = await open(path, segmentFlags).catch((error: unknown) => {
    if (isMissing(error)) return null
    throw isShortage(error) ? error : unaskable(path, errnoOf(error))
  })
  if (handle === null) return null
  if ((await handle.stat()).isFile()) return { handle, [Symbol.asyncDispose]: () => handle.close() }
  await handle.close()
  throw unaskable(path, null)
}

/** Reads a line; null for the torn end of a batch that never counted. */
export function recordOf(line: string): JournalRecord | null {
  try {
    const value: unknown = parseJson(line)
    return typeof value === 'object' && value !== null && 'seq' in value && 'body' in value
      ? ((Object.hasOwn(value, 'mac') ? value : { ...value, ...noSeal }) as JournalRecord)
      : null
  } catch {
    return null
  }
}

/** What the last record of a batch has; null in the others. */
const noSeal = { prev: null, hash: null, mac: null }

/** Lines in order, from some line on that is not behind the first that is wanted. */
async function* linesBehind(file: FileHandle, after: number): AsyncGenerator<string> {
  const { start } = await seek(file, after, nearBytes)
  yield* forward(file, start)
}

/** Lines in reverse, from some line on that is not before the last that is wanted. */
async function* linesBefore(file: FileHandle, before: number | null): AsyncGenerator<string> {
  const end = before === null ? (await file.stat()).size : (await seek(file, before - 1, nearBytes)).end
  yield* backward(file, end)
}

async function* forward(file: FileHandle, start: number): AsyncGenerator<string> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  let rest: Buffer[] = []
  for (let position = start; ;) {
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    const chunk = buffer.subarray(0, bytesRead)
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, end)]).toString('utf8')
      rest = []
      from = end + 1
    }
    if (from < bytesRead) rest.push(Buffer.from(chunk.subarray(from)))
  }
}

/** From the last newline before `from` on: what stands behind it was cut off, whatever it says. */
async function* backward(file: FileHandle, from: number): AsyncGenerator<string> {
  let position = from
  let rest: Buffer[] = [] // of the line that the last chunk began in the middle of
  let isEnded = false
  for (let most = nearBytes; position > 0; most = chunkBytes) {
    const length = Math.min(most, position)
    position -= length
    const buffer = Buffer.alloc(length)
    const { bytesRead } = await file.read(buffer, 0, length, position)
    let end = bytesRead
    for (
      let at = buffer.lastIndexOf(10, end - 1);
      at >= 0;
      at = end > 0 ? buffer.lastIndexOf(10, end - 1) : -1
    ) {
      const line = Buffer.concat([buffer.subarray(at + 1, end), ...rest])
      rest = []
      if (isEnded) yield line.toString('utf8')
      isEnded = true
      end = at
    }
    rest.unshift(buffer.subarray(0, end))
  }
  const first = Buffer.concat(rest)
  if (isEnded) yield first.toString('utf8')
}
