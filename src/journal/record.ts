// The lines of the journal: what one says, how a batch of them hangs on the batch before it, and how both are checked.
import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import { onePiece } from '../lib/one-piece.ts'
import { parseJson } from '../lib/parse-json.ts'
import type { BatchBytes } from './batch-bytes.ts'

/** Hash before the first record of a journal. */
export const genesis = '0'.repeat(64)

/** What a record says, before it has its place in the chain. */
export interface Entry {
  /** What happened, `call.intent` for one; a closed vocabulary of the daemon's */
  readonly type: string
  /** The record's body, a JSON object, already serialized: `{"call":"c-…",…}`. The end of a line tells a batch's last record from the others */
  readonly body: string
}

/** Where a batch ends. */
export interface Position {
  /** Number of its last record; records count from 1, over all segments, without a gap */
  readonly seq: number
  /** SHA-256 of the batch and, through `prev`, of everything before it */
  readonly hash: string
}

/** A record as it was read back. */
export interface JournalRecord {
  readonly seq: number
  readonly at: string
  readonly daemon: string
  readonly segment: number
  readonly type: string
  readonly body: unknown
  /** The batch's last record carries this and the next two for all of it; in the others they are null. `hash` of the batch before */
  readonly prev: string | null
  /** SHA-256 of the batch */
  readonly hash: string | null
  /** HMAC-SHA256 of `hash` and the MAC before it */
  readonly mac: string | null
}

/** Where and when the records of one batch come from: what stands in each of them between `seq` and `type`. */
export const originOf = (at: Date, daemon: string, segment: number): string =>
  onePiece(`,"at":"${isoOf(at)}","daemon":"${daemon}","segment":${segment},"type":"`)

let second = NaN
let untilSecond = ''

/** As `toISOString`, which takes longer than all else of an origin: of one second only the milliseconds are new. */
function isoOf(at: Date): string {
  const ms = at.getTime()
  const now = Math.floor(ms / 1000)
  if (now !== second) {
    untilSecond = at.toISOString().slice(0, -4)
    second = now
  }
  return `${untilSecond}${String(ms - now * 1000).padStart(3, '0')}Z`
}

/** What a MAC is made with: each vouches for the one before it, so that none can be taken out. */
export interface Seal {
  readonly key: Uint8Array
  /** The MAC before it in its segment, or an empty text for the first */
  readonly after: string
}

/** What holds a batch together, and on to the one before. */
export interface Sealed extends Position {
  readonly mac: string
}

/**
 * Lays a batch of at least one record out, one line each, in place of what `bytes` holds.
 *
 * `origin` is what `originOf` gives. The last line says what was before (`prev`), the hash of every byte of the batch up to and
 * with that, and the MAC of the hash and of the MAC before it. One hash and not one for each record: it takes half as long.
 */
export function layOutBatch(
  bytes: BatchBytes,
  entries: readonly Entry[],
  origin: string,
  previous: Position,
  seal: Seal,
): Sealed {
  bytes.clear()
  let { seq } = previous
  let before = '{"seq":'
  // Put together once for all of a type that follow each other, which are mostly half of a batch.
  let [lastType, between] = ['', '']
  for (const { type, body } of entries) {
    if (type !== lastType) [lastType, between] = [type, `${origin}${type}","body":`]
    bytes.add(`${before}${++seq}${between}${body}`)
    before = '}\n{"seq":'
  }
  bytes.add(`,"prev":"${previous.hash}"`)
  const digest = hash('sha256', bytes.bytes)
  const mac = quickMacOf(digest, seal)
  bytes.add(`,"hash":"${digest}","mac":"${mac}"}\n`)
  return { seq, hash: digest, mac }
}

/** Why lines are not the records that should stand there. */
export interface Flaw {
  readonly kind: 'torn' | 'malformed' | 'unreadable' | 'hash' | 'chain' | 'mac'
  readonly detail: string
  /** What reading it failed with, where it is unreadable */
  readonly cause?: unknown
}

const ending = /,"prev":"[0-9a-f]{64}","hash":"([0-9a-f]{64})","mac":"[0-9a-f]{64}"\}$/
/** Characters of the ending that its own hash does not cover */
const uncovered = `,"hash":"${genesis}","mac":"${genesis}"}`.length
const endingLength = `,"prev":"${genesis}"`.length + uncovered

/** Reads one line, without its newline, which should be the record of that number. */
export function decodeRecord(line: string, seq: number): JournalRecord | Flaw {
  const ends = ending.test(line)
  if (!ends && !line.endsWith('}}')) return { kind: 'torn', detail: 'the line does not end as a record does' }
  const record = parse(line, ends)
  if (record === null)
    return { kind: 'malformed', detail: 'the line is not a JSON object with the members of a record' }
  if (record.seq !== seq)
    return { kind: 'chain', detail: `record ${record.seq} stands where record ${seq} should` }
  return record
}

/**
 * Null where a batch is what was written behind `previous`, or what is wrong with it: `batch` are all of its bytes without the last
 * newline, `last` its last record. Without a seal its MAC is not checked.
 */
export function flawOfBatch(
  batch: Buffer,
  last: JournalRecord,
  previous: Position,
  seal: Seal | null,
): Flaw | null {
  const digest = hash('sha256', batch.subarray(0, -uncovered))
  const which =
    last.seq === previous.seq + 1 ? `record ${last.seq}` : `records ${previous.seq + 1} to ${last.seq}`
  if (digest !== last.hash)
    return { kind: 'hash', detail: `the hash of ${which} is ${digest}, it says ${last.hash}` }
  if (last.prev !== previous.hash)
    return { kind: 'chain', detail: `the hash before ${which} is ${previous.hash}, it says ${last.prev}` }
  if (seal !== null && !equal(macOf(digest, seal), last.mac ?? ''))
    return {
      kind: 'mac',
      detail: `the MAC of ${which} was not made with this journal's key, or a MAC before it was taken out`,
    }
  return null
}

/** Most that is hashed to find out where a batch begins of which the one before is damaged, bytes */
const mostTriedBytes = 256 * 1024 * 1024

/** Whether a batch stands in these bytes that its hash holds together, wherever they were damaged before it. */
export function holdsBatch(bytes: Buffer): boolean {
  let starts = [0]
  let room = mostTriedBytes
  for (let [at, end] = [0, bytes.indexOf(10)]; end >= 0; [at, end] = [end + 1, bytes.indexOf(10, end + 1)]) {
    const last = bytes.toString('latin1', Math.max(at, end - endingLength), end)
    const said = ending.exec(last)?.[1]
    if (said === undefined) {
      // A line that is none of a record's is in no batch.
      starts = last.endsWith('}}') ? starts : []
      starts.push(end + 1)
      continue
    }
    for (const start of starts.toReversed()) {
      room -= end - start
      const isTried = room >= 0 || start === starts[0]
      if (isTried && said === hash('sha256', bytes.subarray(start, end - uncovered))) return true
    }
    starts = [end + 1]
  }
  return false
}

const isText = (value: unknown): value is string => typeof value === 'string'

function parse(line: string, ends: boolean): JournalRecord | null {
  let value: Partial<Record<keyof JournalRecord, unknown>>
  try {
    value = parseJson(line) as typeof value
  } catch {
    return null
  }
  const { seq, at, daemon, segment, type, body } = value
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(segment)) return null
  if (!isText(at) || !isText(daemon) || !isText(type)) return null
  const said = { seq: seq as number, at, daemon, segment: segment as number, type, body }
  if (!ends) return { ...said, prev: null, hash: null, mac: null }
  const { prev, hash: digest, mac } = value
  return isText(prev) && isText(digest) && isText(mac) ? { ...said, prev, hash: digest, mac } : null
}

// Taken in once: Node looks raw bytes over at length each time.
const keyObjects = new WeakMap<Uint8Array, KeyObject>()

function macOf(digest: string, { key, after }: Seal): string {
  const known = keyObjects.get(key) ?? createSecretKey(key)
  keyObjects.set(key, known)
  return createHmac('sha256', known)
    .update(digest + after)
    .digest('hex')
}

const blockBytes = 64
const digestBytes = 32
const pads = new WeakMap<
  Uint8Array,
  { readonly first: Buffer; readonly inner: Buffer; readonly outer: Buffer }
>()

/**
 * The same as RFC 2104 spells it out, by two one-shot hashes, for keys of at most a block: making an Hmac object takes several
 * times as long as both. What is written so is read by `macOf`.
 */
function quickMacOf(digest: string, { key, after }: Seal): string {
  let padded = pads.get(key)
  if (padded === undefined) {
    const first = pad(key, 0x36, 2 * digestBytes)
    padded = { first, inner: pad(key, 0x36, 4 * digestBytes), outer: pad(key, 0x5c, digestBytes) }
    pads.set(key, padded)
  }
  const { outer } = padded
  const inner = after === '' ? padded.first : padded.inner
  inner.write(digest + after, blockBytes, 'latin1')
  outer.write(hash('sha256', inner), blockBytes, 'hex')
  return hash('sha256', outer)
}

/** A block of the key's bytes, each changed, with room for what is hashed behind it. */
function pad(key: Uint8Array, change: number, room: number): Buffer {
  if (key.length > blockBytes)
    throw new RangeError(`a key of ${key.length} bytes, expected at most ${blockBytes}`)
  const block = Buffer.alloc(blockBytes + room)
  block.set(key)
  for (let at = 0; at < blockBytes; at++) block[at] = (block[at] ?? 0) ^ change
  return block
}

const equal = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'))
