// The journal's files: numbered segments of lines, and how one is read up to the byte where it breaks off.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readdirSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, isMissing, isShortage } from '../lib/missing.ts'
import {
  decodeRecord,
  type Flaw,
  flawOfBatch,
  genesis,
  holdsBatch,
  type JournalRecord,
  type Position,
} from './record.ts'

const name = /^(\d{8}|[1-9]\d{8,14})\.jsonl$/

/** Path of a segment's file. */
export const segmentPath = (directory: string, segment: number): string =>
  join(directory, `${String(segment).padStart(8, '0')}.jsonl`)

/** Numbers of the segments that stand in a journal's folder, ascending; none when the folder is not there. */
export function listSegments(directory: string): readonly number[] {
  try {
    return readdirSync(directory)
      .flatMap((file) => name.exec(file)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** Throws where the file at `path` is not the one that is open, has a second name, or another length than was written. */
export function expectInPlace(path: string, open: { readonly ino: number; readonly length: number }): void {
  const { ino, nlink, size } = lstatSync(path)
  if (ino === open.ino && nlink === 1 && size === open.length) return
  if (ino !== open.ino)
    throw new Error(`${path} was replaced: put it back, or restart to see what is missing`)
  if (nlink > 1) throw new Error(`${path} has a second name: remove that, or restart to see what is missing`)
  throw new Error(
    `${path} has ${size} bytes, and ${open.length} were written: restart, then sallyport audit verify says what it is now`,
  )
}

/** Bytes behind the last sealed record of a segment: a batch that a crash or a full disk cut off. */
export interface Torn {
  readonly segment: number
  /** Where the last sealed record ends */
  readonly offset: number
  readonly bytes: number
  readonly sha256: string
}

/** The end of a segment to which nothing is added any more. */
export interface SegmentEnd {
  readonly segment: number
  /** Its last sealed record */
  readonly position: Position
  /** Where that record ends in the file, bytes */
  readonly offset: number
  /** What stands behind it, which the next segment tells of */
  readonly torn: Torn | null
}

/** What reading one segment came to. */
export interface SegmentRead {
  /** The last sealed record */
  readonly end: Position
  /** Length of the sealed part */
  readonly offset: number
  readonly torn: Torn | null
  /** A record that is not what was written, with its line number, or a batch, with that of its first record */
  readonly flaw: (Flaw & { readonly line: number }) | null
}

/** Whether what stands behind the last seal, though it is no end that was merely cut off, is one that never counted */
export type MayBeRest = (end: Position, rest: Torn) => boolean

/** Hears of each sealed record, with the number of its line */
type Visit = (record: JournalRecord, line: number) => void

/**
 * Reads a segment batch by batch, checking each against the one before; stops at the first flaw.
 *
 * A batch counts once its last record carries a MAC; what stands behind the last MAC is torn, not flawed. Where it is damaged
 * otherwise than by being cut off, it is torn if no batch in it holds together, and `mayBeRest` says so.
 */
export function readSegment(
  directory: string,
  segment: number,
  from: Position,
  key: Uint8Array | null,
  visit: Visit,
  mayBeRest: MayBeRest = () => false,
): SegmentRead {
  const bytes = bytesOrFlaw(segmentPath(directory, segment))
  if ('kind' in bytes) return { end: from, offset: 0, torn: null, flaw: { ...bytes, line: 0 } }
  let sealed = { end: from, offset: 0 }
  let batch: JournalRecord[] = []
  let flaw: SegmentRead['flaw'] = null
  let seal = key === null ? null : { key, after: '' }
  const areText = isUtf8(bytes)
  for (let [at, number] = [0, 1]; at < bytes.length; number += 1) {
    const newline = bytes.indexOf(10, at)
    if (newline < 0) break
    // What is no UTF-8 is read as a replacement character, which may be what was written.
    const isText = areText || isUtf8(bytes.subarray(at, newline))
    const line = bytes.toString('utf8', at, newline)
    const record = isText ? decodeRecord(line, sealed.end.seq + batch.length + 1) : notText
    if ('kind' in record) {
      const isCutOff = record.kind === 'torn' && newline === bytes.length - 1
      if (!isCutOff) flaw = { ...record, line: number }
      break
    }
    at = newline + 1
    batch.push(record)
    if (record.hash === null) continue
    const first = number - batch.length + 1
    const wrong = flawOfBatch(bytes.subarray(sealed.offset, newline), record, sealed.end, seal)
    if (wrong !== null) {
      flaw = { ...wrong, line: first }
      break
    }
    for (const [n, one] of batch.entries()) visit(one, first + n)
    batch = []
    sealed = { end: { seq: record.seq, hash: record.hash }, offset: at }
    if (seal !== null) seal = { ...seal, after: record.mac ?? '' }
  }
  const rest = bytes.subarray(sealed.offset)
  if (rest.length === 0) return { ...sealed, torn: null, flaw }
  const torn = { segment, offset: sealed.offset, bytes: rest.length, sha256: hash('sha256', rest) }
  const isRest = flaw === null || (!holdsBatch(rest) && mayBeRest(sealed.end, torn))
  return isRest ? { ...sealed, torn, flaw: null } : { ...sealed, torn: null, flaw }
}

/** All of a segment, or why it can't be read; throws where it was let go of or is too long, or the machine is short of something. */
function bytesOrFlaw(path: string): Buffer | Flaw {
  try {
    const placed = {
      kind: 'malformed',
      detail: 'it is no plain file: something was put in its place',
    } as const
    return bytesOf(path) ?? placed
  } catch (error) {
    if (isMissing(error) || isShortage(error) || isTooLong(error)) throw error
    return { kind: 'unreadable', detail: `it cannot be read (${errnoOf(error) ?? 'failed'})`, cause: error }
  }
}

/** True when the segment stands there and ends so. */
export function endsSo(directory: string, { segment, position, offset }: SegmentEnd): boolean {
  if (!listSegments(directory).includes(segment)) return false
  const bytes = bytesOf(segmentPath(directory, segment))
  if (bytes === null || bytes.length < offset || bytes[offset - 1] !== 10) return false
  const line = bytes.toString('utf8', bytes.lastIndexOf(10, offset - 2) + 1, offset)
  return line.includes(`,"hash":"${position.hash}"`) && line.startsWith(`{"seq":${position.seq},`)
}

const notText: Flaw = { kind: 'torn', detail: 'the line is not UTF-8' }

/** Neither a link is followed nor a pipe waited for. */
export const segmentFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Path of a folder that stays its own when the folder is moved, and another takes its place. */
export const throughDescriptor = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** What Node reads at once, bytes */
const readableBytes = 2 ** 31 - 1
const tooLongCode = 'ERR_FS_FILE_TOO_LARGE'

/** Whether a file has more bytes than are read at once: nobody can say what it is then. */
export const isTooLong = (error: unknown): error is Error =>
  error instanceof Error && errnoOf(error) === tooLongCode

/** By its code Node's own, which does not say which file it was. */
const tooLong = (path: string, bytes: number): Error =>
  Object.assign(new Error(`${path} has ${bytes} bytes, and at most ${readableBytes} are read`), {
    code: tooLongCode,
  })

/** All of a segment; null for what is no plain file. Throws where it is too long. */
export function bytesOf(path: string): Buffer | null {
  let fd: number
  try {
    fd = openSync(path, segmentFlags)
  } catch (error) {
    if (errnoOf(error) === 'ELOOP') return null
    throw error
  }
  try {
    const found = fstatSync(fd)
    if (!found.isFile()) return null
    if (found.size > readableBytes) throw tooLong(path, found.size)
    return readFileSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** All of a file's text; throws for what is no plain file, also for a pipe, which nobody waits for. */
export function textOf(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (fstatSync(fd).isFile()) return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
  throw new Error('it is no plain file: something was put in its place')
}

/** The position before the first record. */
export const beginning: Position = { seq: 0, hash: genesis }
