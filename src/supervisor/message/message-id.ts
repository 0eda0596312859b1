// JSON-RPC ids: echoed byte for byte, compared by value.
import { decodeString } from '../../lib/json-scan.ts'

/** An id as it was written, and a key under which every spelling of the same value is the same. */
export interface MessageId {
  /** The literal, in latin1 reading, quotes included */
  readonly raw: string
  readonly key: string
}

/** True for 0, and for what is written with at most fifteen digits, the first not 0: no other spelling of the number is like it. */
function isShortInteger(literal: string): boolean {
  const sign = literal.charCodeAt(0) === 45 ? 1 : 0
  const digits = literal.length - sign
  if (digits < 1 || digits > 15) return false
  if (literal.charCodeAt(sign) === 48) return literal.length === 1
  for (let at = sign; at < literal.length; at++) {
    const char = literal.charCodeAt(at)
    if (char < 48 || char > 57) return false
  }
  return true
}

/**
 * Reads an id literal; null for every type but string and number, and for a number that no double can hold.
 *
 * Numbers are compared as doubles, since that is what both ends make of them: a server that was sent
 * 12345678901234567890 answers 12345678901234567000, one that was sent 1.0 answers 1.
 */
export function messageId(literal: string): MessageId | null {
  const first = literal.charCodeAt(0)
  if (first === 34) return { raw: literal, key: `s${decodeString(literal)}` }
  if (first !== 45 && !(first >= 48 && first <= 57)) return null
  if (isShortInteger(literal)) return { raw: literal, key: `n${literal}` }
  const value = Number(literal)
  return Number.isFinite(value) ? { raw: literal, key: `n${value}` } : null
}
