// Finds the end of a value over the bytes themselves, of which V8 need not ask what kind of text they are.
import { endOfValue } from './json-scan.ts'

const [quote, backslash, space, comma, colon] = [34, 92, 32, 44, 58]
const [openList, closeList, openObject, closeObject] = [91, 93, 123, 125]
/** Not told here: it is read as text, where each thing that may stand in a value is known, and what is wrong is said */
const no = -1
/** Nesting, characters of a string, and keys of one object up to which a value is read here */
const most = { depth: 16, string: 256, keys: 12 } as const

/** Offsets of the keys of the objects that are being read, begin and end of each by turns, the innermost object's last */
const keys = new Uint32Array(2 * most.keys * (most.depth + 1))
let keysEnd = 0

/**
 * The same as `endOfValue`, which is asked wherever there is more to a value than plain strings, whole numbers, words, lists
 * and objects of few keys. `text` is the latin1 reading of `bytes`.
 */
export function endOfValueIn(
  bytes: Uint8Array,
  text: string,
  at: number,
  isUnique: boolean,
  depth: number,
): number {
  keysEnd = 0
  const end = endOf(bytes, text, at, isUnique, 0)
  return end === no ? endOfValue(text, at, isUnique, depth) : end
}

const wordBytes = 4

/** Bytes that are looked for again and again: four of them are compared in the time of one. */
export class Piece {
  readonly length: number
  readonly #words: Int32Array
  readonly #rest: Uint8Array

  constructor(bytes: Buffer) {
    this.length = bytes.length
    this.#words = Int32Array.from({ length: Math.floor(bytes.length / wordBytes) }, (_, n) =>
      bytes.readInt32LE(n * wordBytes),
    )
    this.#rest = Uint8Array.from(bytes.subarray(this.#words.length * wordBytes))
  }

  /** Whether they stand at that offset, before `end`. */
  isAt(view: DataView, at: number, end: number): boolean {
    if (at < 0 || at + this.length > end) return false
    const [words, rest] = [this.#words, this.#rest]
    let here = at
    for (let n = 0; n < words.length; n++, here += wordBytes)
      if (view.getInt32(here, true) !== words[n]) return false
    for (let n = 0; n < rest.length; n++, here++) if (view.getUint8(here) !== rest[n]) return false
    return true
  }
}

let lastSeen: Uint8Array | null = null
let lastView: DataView = new DataView(new ArrayBuffer(0))
/** Longest bytes that are kept for being looked at again */
const longestSeen = 65_536

/** The bytes as pieces are looked for in them; of many messages in one run of bytes the first makes it. */
export function viewOf(bytes: Uint8Array): DataView {
  if (bytes === lastSeen) return lastView
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (bytes.length <= longestSeen) [lastSeen, lastView] = [bytes, view]
  return view
}

function endOf(bytes: Uint8Array, text: string, at: number, isUnique: boolean, depth: number): number {
  if (at >= bytes.length) return no
  const first = bytes[at] as number
  if (first === quote) return endOfString(bytes, at)
  if (first === openObject) return depth < most.depth ? endOfObject(bytes, text, at, isUnique, depth) : no
  if (first === openList) return depth < most.depth ? endOfList(bytes, text, at, isUnique, depth) : no
  if (first > 48 && first < 58) return endOfNumber(bytes, at)
  return first === 116 || first === 102 || first === 110 ? endOfWord(text, at) : no
}

function endOfString(bytes: Uint8Array, at: number): number {
  const to = Math.min(bytes.length, at + most.string)
  for (let here = at + 1; here < to; here++) {
    const char = bytes[here] as number
    if (char === quote) return here + 1
    if (char < 32 || char === backslash) return no
  }
  return no
}

/** Of digits alone, the first of which is not 0. */
function endOfNumber(bytes: Uint8Array, at: number): number {
  for (let here = at + 1; here < bytes.length; here++) {
    const char = bytes[here] as number
    if (char === 46 || (char | 32) === 101) return no
    if (char < 48 || char > 57) return here
  }
  return no
}

function endOfWord(text: string, at: number): number {
  for (const word of words) if (text.startsWith(word, at)) return at + word.length
  return no
}

const words = ['true', 'false', 'null'] as const

function endOfObject(bytes: Uint8Array, text: string, at: number, isUnique: boolean, depth: number): number {
  const begin = keysEnd
  let here = behindSpace(bytes, at + 1)
  if (bytes[here] === closeObject) return here + 1
  for (;;) {
    const behindKey = bytes[here] === quote ? endOfString(bytes, here) : no
    if (behindKey === no || (isUnique && !addKey(bytes, begin, here, behindKey))) return no
    here = behindSpace(bytes, behindKey)
    if (bytes[here] !== colon) return no
    const end = endOrAsk(bytes, text, behindSpace(bytes, here + 1), isUnique, depth + 1)
    if (end === no) return no
    here = behindSpace(bytes, end)
    if (bytes[here] === closeObject) break
    if (bytes[here] !== comma) return no
    here = behindSpace(bytes, here + 1)
  }
  keysEnd = begin
  return here + 1
}

function endOfList(bytes: Uint8Array, text: string, at: number, isUnique: boolean, depth: number): number {
  let here = behindSpace(bytes, at + 1)
  if (bytes[here] === closeList) return here + 1
  for (;;) {
    const end = endOrAsk(bytes, text, here, isUnique, depth + 1)
    if (end === no) return no
    here = behindSpace(bytes, end)
    if (bytes[here] === closeList) return here + 1
    if (bytes[here] !== comma) return no
    here = behindSpace(bytes, here + 1)
  }
}

/** A string or number within another value that is not plain is all that is asked about. */
function endOrAsk(bytes: Uint8Array, text: string, at: number, isUnique: boolean, depth: number): number {
  const end = endOf(bytes, text, at, isUnique, depth)
  if (end !== no || at >= bytes.length) return end
  const first = bytes[at] as number
  const isScalar = first === quote || first === 45 || (first >= 48 && first < 58)
  return isScalar ? endOfValue(text, at, isUnique, 0) : no
}

/** False where the object has it already, or more than are kept. */
function addKey(bytes: Uint8Array, begin: number, start: number, end: number): boolean {
  if (keysEnd - begin >= 2 * most.keys) return false
  for (let at = begin; at < keysEnd; at += 2)
    if (isSame(bytes, keys[at] as number, keys[at + 1] as number, start, end)) return false
  keys[keysEnd] = start
  keys[keysEnd + 1] = end
  keysEnd += 2
  return true
}

function isSame(bytes: Uint8Array, start: number, end: number, other: number, otherEnd: number): boolean {
  if (end - start !== otherEnd - other) return false
  for (let n = 0; n < end - start; n++) if (bytes[start + n] !== bytes[other + n]) return false
  return true
}

function behindSpace(bytes: Uint8Array, at: number): number {
  let here = at
  while (here < bytes.length && bytes[here] === space) here++
  return here
}
