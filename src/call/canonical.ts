// The one form of a call's arguments that digests, approvals and permits speak of: RFC 8785.
import { hash, randomBytes } from 'node:crypto'
import { decimal, WrittenNumber } from '../lib/one-way.ts'
import { remembered } from '../lib/remembered.ts'

/** Arguments that have no canonical form, with where and why. */
export class NotCanonical extends Error {
  override readonly name = 'NotCanonical'
  readonly pointer: string
  readonly what: string

  constructor(pointer: string, what: string) {
    super(`${pointer === '' ? 'the value' : pointer} ${what}`)
    this.pointer = pointer
    this.what = what
  }
}

/** Deepest nesting that is canonicalized; deeper arguments are refused rather than read by recursion. */
export const depthLimit = 128

/**
 * Serializes a parsed JSON value as RFC 8785 says: members sorted by UTF-16 code units, numbers as ECMAScript writes
 * them, no white space. A number that a double does not hold, where it was kept, is its digits and a power of ten.
 *
 * @throws NotCanonical for what I-JSON (RFC 7493) excludes: lone surrogates, numbers that are not finite
 */
export function canonicalize(value: unknown): string {
  if (path.length > 0) path.length = 0 // left behind by what was refused
  return write(value)
}

/** SHA-256 of a text's UTF-8 bytes, lowercase hex. */
export const digestOf = (text: string): string => hash('sha256', text)

const salt = randomBytes(32).toString('hex')

/**
 * Digest of what is sent. Where answers of a person are in it that no record has, it is salted, anew in each life of the
 * daemon: all else is on record, so that a PIN could be guessed by a plain one.
 */
export const sentDigest = (bytes: string, evidence: string): string =>
  digestOf(bytes === evidence ? bytes : salt + bytes)

/** The keys that lead to what is being written: a pointer is made of them only where something is wrong */
const path: (string | number)[] = []

function write(value: unknown): string {
  if (path.length > depthLimit) throw wrong(`is nested deeper than ${depthLimit} levels`)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return writeNumber(value)
  if (typeof value === 'string') return writeText(value)
  if (Array.isArray(value)) return `[${value.map((item, n) => writeInside(item, n)).join(',')}]`
  if (value instanceof WrittenNumber) return decimal(value.written)
  if (typeof value === 'object') return writeObject(value)
  throw wrong(`is ${typeof value}, which JSON has no form for`)
}

function writeInside(value: unknown, key: string | number): string {
  path.push(key)
  const text = write(value)
  path.pop()
  return text
}

function writeObject(value: object): string {
  const members = value as Readonly<Record<string, unknown>>
  const keys = Object.keys(members)
  if (keys.length > 1) keys.sort()
  let text = '{'
  for (const key of keys) {
    path.push(key)
    text += `${text === '{' ? '' : ','}${writeKey(key)}${write(members[key])}`
    path.pop()
  }
  return `${text}}`
}

function writeNumber(value: number): string {
  if (!Number.isFinite(value)) throw wrong('is a number outside what a double holds')
  return Object.is(value, -0) ? '0' : String(value)
}

function writeText(value: string): string {
  if (isPlain(value)) return `"${value}"`
  if (!value.isWellFormed()) throw wrong('holds half of a surrogate pair')
  return JSON.stringify(value)
}

/** The same few come again with each call of a tool */
const writeKey = remembered((key) => `${writeText(key)}:`, 1000)

/** Short, and of characters that stand for themselves in JSON: for such the quotes are all that is to be written. */
function isPlain(text: string): boolean {
  return text.length <= longestPlain && plain.test(text)
}

const plain = /^[ !#-[\]-~]*$/
const longestPlain = 64

function wrong(what: string): NotCanonical {
  const segments = path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`)
  return new NotCanonical(segments.join(''), what)
}
