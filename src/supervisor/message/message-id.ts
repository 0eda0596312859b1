// JSON-RPC ids: echoed byte for byte, compared by value.
import { decodeString } from '../../lib/json-scan.ts'
import { onePiece } from '../../lib/one-piece.ts'

/** Longest id, bytes with its quotes: who speaks chooses how many are kept, also of requests that nobody waits for any more */
export const longestId = 1024
/** Longest literal of which V8 makes a copy where it is cut out */
const copied = 12

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
 * Reads an id literal; null for every type but string and number, for a number that no double can hold, and for what is too long.
 * Nothing of the line that it was cut from is kept with it.
 *
 * Numbers are compared as doubles, since that is what both ends make of them: a server that was sent
 * 12345678901234567890 answers 12345678901234567000, one that was sent 1.0 answers 1.
 */
export function messageId(literal: string): MessageId | null {
  const first = literal.charCodeAt(0)
  if ((first !== 34 && first !== 45 && !(first >= 48 && first <= 57)) || literal.length > longestId)
    return null
  const raw = literal.length > copied ? onePiece(literal) : literal
  if (first === 34) return { raw, key: `s${decodeString(raw)}` }
  if (isShortInteger(raw)) return { raw, key: `n${raw}` }
  const value = Number(raw)
  return Number.isFinite(value) ? { raw, key: `n${value}` } : null
}
