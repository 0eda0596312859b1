// Which byte may be written at one place of a text: raw, or escaped in any of the ways that needles may be written in.
import { controls, hexDigit, mostAgain, names } from './needle.ts'

const raw: readonly (readonly number[])[] = Array.from({ length: 256 }, (_, byte) => [byte])
const plusOrSpace = [0x2b, 0x20]
const entityNames = Object.entries(names).map(([byte, name]) => [Number(byte), name.charCodeAt(0)] as const)

/**
 * Returns the bytes that may stand at `at`, for whoever reads it as a needle may be written: at least all that a needle can
 * begin with there. Null where more bytes are needed to tell. No look is at more than a dozen bytes.
 */
export const mayStandFor = (bytes: Uint8Array, at: number): readonly number[] | null => {
  const byte = bytes[at] ?? 0
  if (byte === 0x5c) return escaped(bytes, at + 1)
  if (byte === 0x25) return percentEncoded(bytes, at + 1)
  if (byte === 0x26) return entity(bytes, at + 1)
  return byte === 0x2b ? plusOrSpace : (raw[byte] ?? null)
}

const escaped = (bytes: Uint8Array, at: number): readonly number[] | null => {
  const letter = bytes[at]
  if (letter === undefined) return null
  if (letter !== 0x75 && letter !== 0x78) return [0x5c, controls[letter] ?? letter]
  const value = hexAt(bytes, at + 1, letter === 0x75 ? 4 : 2)
  return value === null ? null : [0x5c, value]
}

const percentEncoded = (bytes: Uint8Array, from: number): readonly number[] | null => {
  const may = [0x25]
  for (let again = 0; again <= mostAgain; again++) {
    const value = hexAt(bytes, from + 2 * again, 2)
    if (value === null) return null
    may.push(value)
    if (value !== 0x25) break
  }
  return may
}

const entity = (bytes: Uint8Array, at: number): readonly number[] | null => {
  const first = bytes[at]
  if (first === undefined) return null
  if (first === 0x23) {
    const value = referenceAt(bytes, at + 1)
    return value === null ? null : [0x26, value]
  }
  return [0x26, ...entityNames.filter(([, letter]) => letter === first).map(([byte]) => byte)]
}

/** `65;` or `x41;`: its value, -1 where it has none, null where it ends early. */
const referenceAt = (bytes: Uint8Array, from: number): number | null => {
  const isHex = ((bytes[from] ?? 0) | 0x20) === 0x78
  const digits = isHex ? from + 1 : from
  for (let [at, value] = [digits, 0]; at < digits + 8; at++) {
    const byte = bytes[at]
    if (byte === undefined) return null
    if (byte === 0x3b) return at > digits ? value : -1
    const digit = hexDigit(byte)
    if (digit < 0 || (!isHex && digit > 9)) return -1
    value = value * (isHex ? 16 : 10) + digit
  }
  return -1
}

/** The value of so many digits, -1 where there are others, null where they end early. */
const hexAt = (bytes: Uint8Array, from: number, digits: number): number | null => {
  let value = 0
  for (let at = from; at < from + digits; at++) {
    const byte = bytes[at]
    if (byte === undefined) return null
    const digit = hexDigit(byte)
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}
