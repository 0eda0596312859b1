// The one form of a call's arguments that digests, approvals and permits speak of: RFC 8785.
import { hash } from 'node:crypto'

/** Arguments that have no canonical form, with where and why. */
export class NotCanonical extends Error {
  override readonly name = 'NotCanonical'
  readonly pointer: string

  constructor(pointer: string, what: string) {
    super(`${pointer === '' ? 'the value' : pointer} ${what}`)
    this.pointer = pointer
  }
}

/** Deepest nesting that is canonicalized; deeper arguments are refused rather than read by recursion. */
export const depthLimit = 128

/**
 * Serializes a parsed JSON value as RFC 8785 says: members sorted by UTF-16 code units, numbers as ECMAScript writes
 * them, no white space.
 *
 * @throws NotCanonical for what I-JSON (RFC 7493) excludes: lone surrogates, numbers that are not finite
 */
export function canonicalize(value: unknown): string {
  return write(value, '', 0)
}

/** SHA-256 of a text's UTF-8 bytes, lowercase hex. */
export const digestOf = (text: string): string => hash('sha256', text)

function write(value: unknown, pointer: string, depth: number): string {
  if (depth > depthLimit) throw new NotCanonical(pointer, `is nested deeper than ${depthLimit} levels`)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return writeNumber(value, pointer)
  if (typeof value === 'string') return writeText(value, pointer)
  if (Array.isArray(value))
    return `[${value.map((item, n) => write(item, `${pointer}/${n}`, depth + 1)).join(',')}]`
  if (typeof value === 'object') return writeObject(value, pointer, depth)
  throw new NotCanonical(pointer, `is ${typeof value}, which JSON has no form for`)
}

function writeObject(value: object, pointer: string, depth: number): string {
  const members = value as Readonly<Record<string, unknown>>
  const keys = Object.keys(members)
  if (keys.length > 1) keys.sort()
  let text = '{'
  for (const key of keys) {
    const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    text += `${text === '{' ? '' : ','}${writeText(key, at)}:${write(members[key], at, depth + 1)}`
  }
  return `${text}}`
}

function writeNumber(value: number, pointer: string): string {
  if (!Number.isFinite(value)) throw new NotCanonical(pointer, 'is a number outside what a double holds')
  return Object.is(value, -0) ? '0' : String(value)
}

function writeText(value: string, pointer: string): string {
  if (!value.isWellFormed()) throw new NotCanonical(pointer, 'holds half of a surrogate pair')
  return JSON.stringify(value)
}
