// The strings of JSON that are read: keys, and literals that are short.
import { parseJson } from './parse-json.ts'

const backslash = 92

/** The string that a JSON string literal (latin1 reading, with its quotes) stands for. */
export function decodeString(literal: string): string {
  if (isPlain(literal, 1, literal.length - 1)) return literal.slice(1, -1)
  return parseJson(Buffer.from(literal, 'latin1').toString('utf8')) as string
}

/** Keys of most messages by their length: one string each, which is compared at a glance and hashed once. */
const usualKeys: readonly (readonly string[])[] = Array.from({ length: 10 }, (_, length) =>
  'id name type text data _meta error params method result content message jsonrpc arguments'
    .split(' ')
    .filter((key) => key.length === length),
)

/** The string that stands between two quotes. */
export function keyBetween(text: string, start: number, end: number): string {
  for (const key of usualKeys[end - start] ?? noUsualKeys) if (standsAt(text, start, key)) return key
  return isPlain(text, start, end) ? text.slice(start, end) : decodeString(text.slice(start - 1, end + 1))
}

const noUsualKeys: readonly string[] = []

function standsAt(text: string, start: number, key: string): boolean {
  for (let at = 0; at < key.length; at++) if (text.charCodeAt(start + at) !== key.charCodeAt(at)) return false
  return true
}

function isPlain(text: string, start: number, end: number): boolean {
  for (let here = start; here < end; here++) {
    const char = text.charCodeAt(here)
    if (char === backslash || char > 126) return false
  }
  return true
}
