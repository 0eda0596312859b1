// With which bytes a needle may begin, however it is written.
import { hexDigit, names, type Needle } from './needle.ts'

/** Tells each pair of bytes with which the needle may begin, and each single one. */
export const beginnings = (needle: Needle, tell: (first: number, second: number | null) => void): void => {
  const { text, alike, percent, entities, backslash, gaps } = needle
  const writtenAs = (wanted: number): number[] => {
    const same = [...alike.keys()].filter((byte) => alike[byte] === alike[wanted])
    return percent !== 'none' && wanted === 0x20 ? [...same, 0x2b] : same
  }
  const escapes = [
    ...(percent === 'none' ? [] : [0x25]),
    ...(entities ? [0x26] : []),
    ...(backslash ? [0x5c] : []),
  ]
  const [wanted = 0, next = 0] = text
  const seconds = [...writtenAs(next), ...escapes, ...(gaps === 'lines' ? [0x0d, 0x0a] : [])]
  for (const first of writtenAs(wanted)) {
    tell(first, null)
    for (const second of seconds) tell(first, second)
  }
  for (const escape of escapes) {
    tell(escape, null)
    for (let second = 0; second < 256; second++) if (mayFollow(escape, second, wanted)) tell(escape, second)
  }
}

const mayFollow = (escape: number, second: number, wanted: number): boolean => {
  if (escape === 0x5c) return !isDigit(second)
  if (escape === 0x25) return hexDigit(second) >= 0
  return second === 0x23 || second === names[wanted]?.charCodeAt(0)
}

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
