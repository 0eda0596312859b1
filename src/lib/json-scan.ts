// Finds where things are in one line of JSON without building values, and refuses what is not JSON or says a thing twice.
//
// The text is the latin1 reading of UTF-8 bytes: structure is ASCII, so every offset is a byte offset, and a slice
// turned back into latin1 is byte for byte what was sent. A raw line feed is never white space here: the text may go
// on behind it with the next message, which must not complete this one.

import { JsonScanError, syntax, tooMany, twice } from './json-scan-error.ts'
import { decodeString, keyBetween } from './json-key.ts'
import { comparable, KeySet } from './key-set.ts'
import { endOfPlain } from './plain-run.ts'

export { decodeString, JsonScanError }

/** Where one member of an object stands: its decoded key, and the offsets of its value. */
export interface Member {
  readonly key: string
  readonly start: number
  readonly end: number
  /** Members of the value, where they were asked for and it is an object; else empty */
  readonly inner: readonly Member[]
}

/** Offsets of one value, end exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

type Bounded = boolean | 'listed'

interface Wishes {
  /** Refuse an object, at any depth, that has the same key twice */
  readonly unique?: boolean
  /** Refuse more than `mostParts` keys and values, or more than `mostListed` members in what is listed; `listed` refuses those alone */
  readonly bounded?: Bounded
  /** Keys whose values' own members are listed too */
  readonly inside?: ReadonlySet<string>
}

const maxDepth = 1000
/** Keys and values of one message that are read: what is made of them takes time by their number, whatever their length */
export const mostParts = 250_000
/** Members of one object, and messages of one batch, each of which is looked at closely */
export const mostListed = 10_000
/** Longest key of a message that is read, characters: V8 tells longer ones apart by their length alone where it looks for them */
export const mostKey = 16_383
const unbounded = 2 ** 30
const quote = 34
const backslash = 92
/** Characters of a string without an escape after which the next that is special is searched for, not waited for */
const longRun = 128
const none: readonly Member[] = []
const noKeys: ReadonlySet<string> = new Set()

/**
 * Lists the members of the object that `text` holds from `start` to `end`, white space around it allowed. The whole
 * of the text is checked against the grammar. `partial`, where given, receives the members found before a failure.
 */
export function members(
  text: string,
  start: number,
  end: number,
  { unique = false, bounded = false, inside = noKeys }: Wishes = {},
  partial: Member[] = [],
): Member[] {
  bound(bounded)
  const open = skipSpace(text, start)
  if (text.charCodeAt(open) !== 123) throw syntax(text, open, 'an object')
  const close = skipObject(text, open, unique, 0, partial, inside)
  expectEnd(text, close, end)
  return partial
}

/** Lists the elements of the array that `text` holds from `start` to `end`. */
export function elements(
  text: string,
  start: number,
  end: number,
  { unique = false, bounded = false }: Wishes = {},
): Span[] {
  bound(bounded)
  const open = skipSpace(text, start)
  if (text.charCodeAt(open) !== 91) throw syntax(text, open, 'an array')
  const spans: Span[] = []
  const close = skipArray(text, open, unique, 0, spans)
  expectEnd(text, close, end)
  return spans
}

/**
 * First offset at or after `at` that is not white space. A carriage return is only where the line or the text ends with it:
 * who takes it for the end of a line (Python's text streams do) would find a message of its own behind any other.
 */
export function skipSpace(text: string, at: number): number {
  let here = at
  for (;;) {
    const char = text.charCodeAt(here)
    if (char !== 32 && char !== 9 && !(char === 13 && endsAt(text, here + 1))) return here
    here++
  }
}

const endsAt = (text: string, at: number): boolean => at === text.length || text.charCodeAt(at) === 10

/** Of the scan that is going on: keys and values that it may still meet, and members that it may list of one object */
let partsLeft = unbounded
let listedMost = unbounded
let longestKey = unbounded

/** Begins to count the parts of a message. */
export function bound(bounded: Bounded): void {
  partsLeft = bounded === true ? mostParts : unbounded
  listedMost = bounded === false ? unbounded : mostListed
  longestKey = bounded === true ? mostKey : unbounded
}

/**
 * Returns the offset behind the value that begins at `at`, inside of so many others, as the whole of its message would be read;
 * of messages that are read value by value the first begins with `bound`.
 */
export const endOfValue = (text: string, at: number, isUnique: boolean, depth: number): number =>
  skipValue(text, at, isUnique, depth)

function expectEnd(text: string, at: number, end: number): void {
  const here = skipSpace(text, at)
  if (here < end) throw syntax(text, here, 'the end of the line')
  if (at > end) throw new JsonScanError('syntax', 'the line ends in the middle of a value', end)
}

function skipValue(text: string, at: number, unique: boolean, depth: number): number {
  switch (text.charCodeAt(at)) {
    case quote:
      return skipString(text, at)
    case 123:
      return skipObject(text, at, unique, depth, null, noKeys)
    case 91:
      return skipArray(text, at, unique, depth, null)
    case 116:
      return skipWord(text, at, 'true')
    case 102:
      return skipWord(text, at, 'false')
    case 110:
      return skipWord(text, at, 'null')
    default:
      return skipNumber(text, at)
  }
}

function skipObject(
  text: string,
  at: number,
  unique: boolean,
  depth: number,
  out: Member[] | null,
  inside: ReadonlySet<string>,
): number {
  if (depth >= maxDepth) throw new JsonScanError('depth', `it is nested deeper than ${maxDepth} levels`, at)
  let here = skipSpace(text, at + 1)
  if (text.charCodeAt(here) === 125) return here + 1
  let first: string | null = null
  let more: KeySet | null = null
  for (;;) {
    if (text.charCodeAt(here) !== quote) throw syntax(text, here, 'a key')
    if ((partsLeft -= 2) < 0) throw tooMany(mostParts, 'keys and values', here)
    const afterKey = skipString(text, here)
    if (afterKey - here - 2 > longestKey) throw tooMany(mostKey, 'characters in a key', here)
    const key = out !== null ? keyBetween(text, here + 1, afterKey - 1) : ''
    if (unique) {
      const said = out !== null ? key : comparable(text, here + 1, afterKey - 1)
      if (out === null && first === null) first = said
      else if (
        out !== null && out.length < few
          ? isIn(out, said)
          : said === first || !(more ??= new KeySet(out)).add(said)
      )
        throw twice(keyBetween(text, here + 1, afterKey - 1), here)
    }
    here = skipSpace(text, afterKey)
    if (text.charCodeAt(here) !== 58) throw syntax(text, here, '":"')
    const start = skipSpace(text, here + 1)
    let end: number
    if (out === null) end = skipValue(text, start, unique, depth + 1)
    else {
      const inner = text.charCodeAt(start) === 123 && inside.has(key) ? [] : null
      end =
        inner === null
          ? skipValue(text, start, unique, depth + 1)
          : skipObject(text, start, unique, depth + 1, inner, noKeys)
      if (out.push({ key, start, end, inner: inner ?? none }) > listedMost)
        throw tooMany(mostListed, 'members in one object that is looked at', here)
    }
    here = skipSpace(text, end)
    const next = text.charCodeAt(here)
    if (next === 125) return here + 1
    if (next !== 44) throw syntax(text, here, '"," or "}"')
    here = skipSpace(text, here + 1)
  }
}

function skipArray(text: string, at: number, unique: boolean, depth: number, out: Span[] | null): number {
  if (depth >= maxDepth) throw new JsonScanError('depth', `it is nested deeper than ${maxDepth} levels`, at)
  let here = skipSpace(text, at + 1)
  if (text.charCodeAt(here) === 93) return here + 1
  for (;;) {
    if (--partsLeft < 0) throw tooMany(mostParts, 'keys and values', here)
    const end = skipValue(text, here, unique, depth + 1)
    if (out !== null && out.push({ start: here, end }) > listedMost)
      throw tooMany(mostListed, 'elements in the list', here)
    here = skipSpace(text, end)
    const next = text.charCodeAt(here)
    if (next === 93) return here + 1
    if (next !== 44) throw syntax(text, here, '"," or "]"')
    here = skipSpace(text, here + 1)
  }
}

/** Members listed so far that are looked through for a key; among more it is looked for in a set */
const few = 12

function isIn(listed: readonly Member[], key: string): boolean {
  for (let at = 0; at < listed.length; at++) if (listed[at]?.key === key) return true
  return false
}

/** Returns the offset behind the closing quote. Control characters and unknown escapes are refused. */
function skipString(text: string, at: number): number {
  let here = at + 1
  let isLongFrom = here + longRun
  for (;;) {
    const char = text.charCodeAt(here)
    if (char === quote) return here + 1
    if (char === backslash) {
      here = skipEscape(text, here)
      isLongFrom = here + longRun
    } else if (char < 32 || char !== char) throw syntax(text, here, 'the rest of a string')
    else if (here < isLongFrom) here++
    else here = endOfPlain(text, here)
  }
}

function skipEscape(text: string, at: number): number {
  const char = text.charAt(at + 1)
  if (char === 'u') {
    for (let digit = at + 2; digit < at + 6; digit++) {
      if (!isHex(text.charCodeAt(digit))) throw syntax(text, digit, 'a hexadecimal digit')
    }
    return at + 6
  }
  if (char === '' || !'"\\/bfnrt'.includes(char)) throw syntax(text, at + 1, 'an escape that JSON has')
  return at + 2
}

function skipWord(text: string, at: number, word: string): number {
  if (!text.startsWith(word, at)) throw syntax(text, at, 'a value')
  return at + word.length
}

function skipNumber(text: string, at: number): number {
  let here = text.charCodeAt(at) === 45 ? at + 1 : at
  if (text.charCodeAt(here) === 48) here++
  else here = skipDigits(text, here)
  if (text.charCodeAt(here) === 46) here = skipDigits(text, here + 1)
  if ((text.charCodeAt(here) | 32) === 101) {
    const sign = text.charCodeAt(here + 1)
    here = skipDigits(text, sign === 43 || sign === 45 ? here + 2 : here + 1)
  }
  return here
}

function skipDigits(text: string, at: number): number {
  let here = at
  while (isDigit(text.charCodeAt(here))) here++
  if (here === at) throw syntax(text, at, 'a value')
  return here
}

const isDigit = (char: number): boolean => char >= 48 && char <= 57
const isHex = (char: number): boolean => isDigit(char) || ((char | 32) >= 97 && (char | 32) <= 102)
