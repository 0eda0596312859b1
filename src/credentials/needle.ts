// The forms in which a secret may come back: as it is, URL-encoded, JSON-escaped, in base64 and in hex.

/** One text to look for, and how freely its bytes may be written. */
export interface Needle {
  readonly credential: string
  readonly text: Uint8Array
  /** Bytes that count as one another have the same entry */
  readonly alike: Uint8Array
  /** Whether `%41` stands for its byte, and `+` for a space */
  readonly percent: boolean
  /** Whether `\u0041`, `\x41` and `\/` stand for theirs */
  readonly backslash: boolean
  /** Whether line breaks may stand between bytes, as in wrapped base64 */
  readonly gaps: boolean
}

/** What `matchAt` says where it is no end: the bytes differ, or ended before they could. */
export const differs = -1
export const endsEarly = 0

/** Values shorter than this, bytes, are not looked for: they would be found everywhere. */
export const shortestValue = 4
/** Encoded forms shorter than this, bytes, are not looked for. */
const shortestForm = 8

const table = (alike: (byte: number) => number): Uint8Array =>
  Uint8Array.from({ length: 256 }, (_, byte) => alike(byte))
const exact = table((byte) => byte)
const folded = table((byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte))
const base64Alphabets = table((byte) => ({ 0x2d: 0x2b, 0x5f: 0x2f })[byte] ?? byte)

/**
 * Returns what to look for, for one value.
 *
 * A value without `%` and `\` is one needle in which each byte may be raw, URL-encoded or escaped. With one of them a byte
 * could be read two ways, so each way is a needle of its own. Base64 is found in both alphabets at each of the three
 * alignments; the letters that hold bits of its neighbours are not part of it. Forms of forms (base64 of hex) are not found.
 */
export const needlesOf = (credential: string, value: Uint8Array): readonly Needle[] => {
  if (value.length < shortestValue) return []
  const bytes = Buffer.from(value)
  const plain = { credential, alike: exact, percent: false, backslash: false, gaps: false }
  const isAmbiguous = bytes.includes(0x25) || bytes.includes(0x5c)
  const written: readonly Needle[] = isAmbiguous
    ? [
        { ...plain, text: bytes },
        { ...plain, text: bytes, percent: true },
        { ...plain, text: bytes, backslash: true },
      ]
    : [{ ...plain, text: bytes, percent: true, backslash: true }]
  const encoded: readonly Needle[] = [
    ...[0, 1, 2].map((alignment): Needle => {
      const text = base64At(bytes, alignment)
      return { ...plain, text, alike: base64Alphabets, percent: true, backslash: true, gaps: true }
    }),
    { ...plain, text: Buffer.from(bytes.toString('hex')), alike: folded },
    ...inUnits(bytes).map((text): Needle => ({ ...plain, text, alike: folded })),
  ]
  return [...written, ...encoded.filter(({ text }) => text.length >= shortestForm)]
}

// Each letter carries six bits; those which a neighbour before or after shares in depend on the neighbour.
const base64At = (value: Buffer, alignment: number): Buffer => {
  const length = alignment + value.length
  const letters = Buffer.concat([Buffer.alloc(alignment), value]).toString('base64')
  return Buffer.from(letters.slice(Math.ceil((alignment * 8) / 6), Math.floor((length * 8) / 6)))
}

// JSON in ASCII alone: letters beyond it are UTF-16 units, which no single byte of UTF-8 corresponds to.
const inUnits = (value: Buffer): readonly Buffer[] => {
  const text = value.toString('utf8')
  if (!/[^\0-\x7f]/.test(text) || !Buffer.from(text).equals(value)) return []
  const escaped = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [Buffer.from(escaped)]
}

/** Returns where the needle that begins at `from` ends, or `differs`, or `endsEarly` where more bytes may complete it. */
export const matchAt = (bytes: Uint8Array, from: number, needle: Needle): number => {
  const { text, gaps } = needle
  let at = from
  for (let index = 0; index < text.length; index++) {
    if (gaps && index > 0) at = afterGap(bytes, at)
    at = afterByte(bytes, at, text[index] ?? 0, needle)
    if (at <= endsEarly) return at
  }
  return at
}

// One line break: CR, LF or both, as bytes or escaped.
const afterGap = (bytes: Uint8Array, from: number): number => {
  let at = from
  for (const [byte, letter] of lineBreak) {
    if (bytes[at] === byte) at++
    else if (bytes[at] === 0x5c && bytes[at + 1] === letter) at += 2
  }
  return at
}
const lineBreak = [
  [0x0d, 0x72],
  [0x0a, 0x6e],
] as const

const afterByte = (bytes: Uint8Array, at: number, wanted: number, needle: Needle): number => {
  const { alike, percent, backslash } = needle
  const byte = bytes[at]
  if (byte === undefined) return endsEarly
  if (backslash && byte === 0x5c) return afterEscape(bytes, at, wanted, alike)
  if (percent && byte === 0x25) return afterHex(bytes, at + 1, 2, wanted, alike)
  if (alike[byte] === alike[wanted] || (percent && byte === 0x2b && wanted === 0x20)) return at + 1
  return differs
}

const controls: Readonly<Record<number, number>> = {
  0x62: 0x08,
  0x66: 0x0c,
  0x6e: 0x0a,
  0x72: 0x0d,
  0x74: 0x09,
}

const afterEscape = (bytes: Uint8Array, at: number, wanted: number, alike: Uint8Array): number => {
  const letter = bytes[at + 1]
  if (letter === undefined) return endsEarly
  if (letter === 0x75) return wanted < 0x80 ? afterHex(bytes, at + 2, 4, wanted, alike) : differs
  if (letter === 0x78) return afterHex(bytes, at + 2, 2, wanted, alike)
  return (controls[letter] ?? letter) === wanted ? at + 2 : differs
}

const afterHex = (
  bytes: Uint8Array,
  at: number,
  digits: number,
  wanted: number,
  alike: Uint8Array,
): number => {
  let value = 0
  for (let index = at; index < at + digits; index++) {
    const byte = bytes[index]
    if (byte === undefined) return endsEarly
    const digit = hexDigit(byte)
    if (digit < 0) return differs
    value = value * 16 + digit
  }
  return value < 256 && alike[value] === alike[wanted] ? at + digits : differs
}

const hexDigit = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Tells each pair of bytes with which the needle may begin, and each single one. */
export const beginnings = (needle: Needle, tell: (first: number, second: number | null) => void): void => {
  const { text, alike, percent, backslash, gaps } = needle
  const writtenAs = (wanted: number): number[] => {
    const same = [...alike.keys()].filter((byte) => alike[byte] === alike[wanted])
    return percent && wanted === 0x20 ? [...same, 0x2b] : same
  }
  const escapes = [...(percent ? [0x25] : []), ...(backslash ? [0x5c] : [])]
  const [wanted = 0, next = 0] = text
  const seconds = [...writtenAs(next), ...escapes, ...(gaps ? [0x0d, 0x0a] : [])]
  for (const first of writtenAs(wanted)) {
    tell(first, null)
    for (const second of seconds) tell(first, second)
  }
  for (const escape of escapes) {
    tell(escape, null)
    for (let second = 0; second < 256; second++)
      if (escape === 0x5c ? !isDigit(second) : hexDigit(second) >= 0) tell(escape, second)
  }
}

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
