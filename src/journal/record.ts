// One line of the journal: what it says, how it hangs on the line before it, and how both are checked.
import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import { onePiece } from '../lib/one-piece.ts'

/** Hash before the first record of a journal. */
export const genesis = '0'.repeat(64)

/** What a record says, before it has its place in the chain. */
export interface Entry {
  /** What happened, `call.intent` for one; a closed vocabulary of the daemon's */
  readonly type: string
  /** JSON members of the record's body, already serialized: `{"call":"c-…",…}` */
  readonly body: string
}

/** Where a record stands. */
export interface Position {
  /** Counts from 1, over all segments, without a gap */
  readonly seq: number
  /** SHA-256 of the record and, through `prev`, of everything before it */
  readonly hash: string
}

/** A record as it was read back. */
export interface JournalRecord extends Position {
  readonly at: string
  readonly daemon: string
  readonly segment: number
  readonly type: string
  readonly body: unknown
  readonly prev: string
  /** HMAC-SHA256 of `hash` and the MAC before it, or null inside a batch: the batch's last record carries it for all */
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

/** A record as it is written. */
export interface Encoded extends Position {
  /** Newline included */
  readonly line: string
  readonly mac: string | null
}

/**
 * Writes one record as a line.
 *
 * `origin` is what `originOf` gives. `hash` covers every byte before its own member, `prev` among them; with a seal, `mac` covers `hash`
 * and the MAC before it.
 */
export function encodeRecord(entry: Entry, origin: string, previous: Position, seal: Seal | null): Encoded {
  const seq = previous.seq + 1
  const covered = `{"seq":${seq}${origin}${entry.type}","body":${entry.body},"prev":"${previous.hash}"`
  const digest = hash('sha256', covered)
  const mac = seal === null ? null : quickMacOf(digest, seal)
  const sealed = mac === null ? '' : `,"mac":"${mac}"`
  return { seq, hash: digest, line: `${covered},"hash":"${digest}"${sealed}}\n`, mac }
}

/** Why a line is not the record that should stand there. */
export interface Flaw {
  readonly kind: 'torn' | 'malformed' | 'hash' | 'chain' | 'mac'
  readonly detail: string
}

const tail = /,"hash":"([0-9a-f]{64})"(?:,"mac":"([0-9a-f]{64})")?\}$/

/** Reads one line (without its newline) and checks it against the record before it; without a seal its MAC is not checked. */
export function decodeRecord(line: string, previous: Position, seal: Seal | null): JournalRecord | Flaw {
  const end = tail.exec(line)
  if (end === null) return { kind: 'torn', detail: 'the line does not end as a record does' }
  const [, written = '', mac = null] = end
  const digest = hash('sha256', line.slice(0, end.index))
  if (digest !== written) return { kind: 'hash', detail: `the line hashes to ${digest}, it says ${written}` }
  const record = parse(line)
  if (record === null)
    return { kind: 'malformed', detail: 'the line is not a JSON object with the members of a record' }
  if (record.prev !== previous.hash || record.seq !== previous.seq + 1)
    return {
      kind: 'chain',
      detail: `record ${record.seq} hangs on ${record.prev}, expected ${previous.seq + 1} on ${previous.hash}`,
    }
  if (seal !== null && mac !== null && !equal(macOf(digest, seal), mac))
    return {
      kind: 'mac',
      detail: `record ${record.seq} was not written with this journal's key, or a MAC before it was taken out`,
    }
  return { ...record, hash: digest, mac }
}

const isText = (value: unknown): value is string => typeof value === 'string'

function parse(line: string): Omit<JournalRecord, 'hash' | 'mac'> | null {
  let value: Partial<Record<keyof JournalRecord, unknown>>
  try {
    value = JSON.parse(line) as typeof value
  } catch {
    return null
  }
  const { seq, at, daemon, segment, type, body, prev } = value
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(segment)) return null
  if (!isText(at) || !isText(daemon) || !isText(type) || !isText(prev)) return null
  return { seq: seq as number, at, daemon, segment: segment as number, type, body, prev }
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
