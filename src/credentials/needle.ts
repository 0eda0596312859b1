// The forms in which a secret may come back: as it is, URL-encoded, JSON-escaped, in HTML's entities, in base64, in hex, in UTF-16.

/** One text to look for, and how freely its bytes may be written. */
export interface Needle {
  readonly credential: string
  readonly text: Uint8Array
  /** Bytes that count as one another have the same entry */
  readonly alike: Uint8Array
  /** Whether `%41` stands for its byte, and `+` for a space: encoded again, as in `%2541`, so many times exactly, or any number that is looked for */
  readonly percent: 'none' | 'any' | number
  /** Whether `&#65;`, `&#x41;` and the few names that all know stand for theirs */
  readonly entities: boolean
  /** Whether `\u0041`, `\x41` and `\/` stand for theirs */
  readonly backslash: boolean
  /** What may stand between bytes: line breaks, as in wrapped base64, or between pairs of them whatever dumps of hex have there */
  readonly gaps: 'none' | 'lines' | 'pairs'
}

/** What `matchAt` says where it is no end: the bytes differ, or ended before they could. */
export const differs = -1
export const endsEarly = 0

/** Values shorter than this, bytes, are not looked for: they would be found everywhere. */
export const shortestValue = 4
/** Values of this many bytes are found in any case: names of hosts and headers have one case only. Shorter ones are words. */
const shortestAnyCase = 16
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
 * A value without `%`, `&` and `\` is one needle in which each byte may be raw, URL-encoded or escaped. With one of them a byte
 * could be read two ways, so each way is a needle of its own. Base64 is found in both alphabets at each of the three
 * alignments; the letters that hold bits of its neighbours are not part of it. Forms of forms (base64 of hex) are not found.
 *
 * Each text has memory of its own: a few bytes of Node's pool of 64 KiB would keep all of it for as long as they are kept.
 */
export const needlesOf = (credential: string, value: Uint8Array): readonly Needle[] => {
  if (value.length < shortestValue) return []
  const bytes = Buffer.from(value)
  const plain = {
    credential,
    alike: bytes.length < shortestAnyCase ? exact : folded,
    percent: 'none',
    entities: false,
    backslash: false,
    gaps: 'none',
  } as const
  const isAmbiguous = [0x25, 0x26, 0x5c].some((byte) => bytes.includes(byte))
  const written: readonly Needle[] = isAmbiguous
    ? [
        { ...plain, text: bytes },
        ...[0, 1, 2].map((percent): Needle => ({ ...plain, text: bytes, percent })),
        { ...plain, text: bytes, entities: true },
        { ...plain, text: bytes, backslash: true },
      ]
    : [{ ...plain, text: bytes, percent: 'any', entities: true, backslash: true }]
  const encoded: readonly Needle[] = [
    ...[0, 1, 2].map((alignment): Needle => {
      const text = base64At(bytes, alignment)
      return {
        ...plain,
        text,
        alike: base64Alphabets,
        percent: 'any',
        entities: true,
        backslash: true,
        gaps: 'lines',
      }
    }),
    { ...plain, text: Buffer.from(bytes.toString('hex')), alike: folded, gaps: 'pairs' },
    ...inWideUnits(bytes).map((text): Needle => ({ ...plain, text, backslash: !isAmbiguous })),
    ...inUnits(bytes).map((text): Needle => ({ ...plain, text, alike: folded })),
  ]
  const forms = [...written, ...encoded.filter(({ text }) => text.length >= shortestForm)]
  const kept = forms.map((form): Needle => ({ ...form, text: Uint8Array.from(form.text) }))
  for (const { text } of [...written, ...encoded]) text.fill(0)
  return kept
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

// UTF-16, either end first. Without the zero that one begins and the other ends with they are the same for ASCII.
const inWideUnits = (value: Buffer): readonly Buffer[] => {
  const text = value.toString('utf8')
  if (!Buffer.from(text).equals(value)) return []
  const little = Buffer.from(text, 'utf16le')
  const big = Buffer.from(little).swap16()
  const trimmed = [
    little.at(-1) === 0 ? little.subarray(0, -1) : little,
    big[0] === 0 ? big.subarray(1) : big,
  ]
  return trimmed[0]?.equals(trimmed[1] ?? little) === true ? trimmed.slice(1) : trimmed
}

/** How many bytes of needles may still be compared. */
export interface Effort {
  left: number
}

const anyEffort: Effort = { left: Infinity }

/** Returns where the needle that begins at `from` ends, or `differs`, or `endsEarly` where more bytes may complete it. */
export const matchAt = (
  bytes: Uint8Array,
  from: number,
  needle: Needle,
  effort: Effort = anyEffort,
): number => {
  const { text, gaps } = needle
  let at = from
  for (let index = 0; index < text.length; index++) {
    if (index > 0 && gaps === 'lines') at = afterGap(bytes, at)
    else if (index > 0 && gaps === 'pairs' && index % 2 === 0) at = afterSeparators(bytes, at)
    at = afterByte(bytes, at, text[index] ?? 0, needle)
    if (at > endsEarly) continue
    effort.left -= index + 1
    return at
  }
  effort.left -= text.length
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

// Two signs at most and a line break, then `0x`: `41:42`, `41 42`, `0x41, 0x42`. What may go on ends early.
const afterSeparators = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < from + 2 && separators.has(bytes[at] ?? 0)) at++
  at = afterGap(bytes, at)
  const [byte, next] = [bytes[at], bytes[at + 1]]
  if (next === undefined && (byte === 0x30 || byte === 0x5c)) return bytes.length
  return byte === 0x30 && next !== undefined && (next | 0x20) === 0x78 ? at + 2 : at
}
const separators: ReadonlySet<number> = new Set(Buffer.from(' :,-_.;'))

const afterByte = (bytes: Uint8Array, at: number, wanted: number, needle: Needle): number => {
  const { alike, percent, entities, backslash } = needle
  const byte = bytes[at]
  if (byte === undefined) return endsEarly
  if (backslash && byte === 0x5c) return afterEscape(bytes, at, wanted, alike)
  if (percent !== 'none' && byte === 0x25) return afterPercent(bytes, at + 1, wanted, needle)
  if (entities && byte === 0x26) {
    const end = afterEntity(bytes, at + 1, wanted)
    if (end !== differs) return end
  }
  if (alike[byte] === alike[wanted] || (percent !== 'none' && byte === 0x2b && wanted === 0x20)) return at + 1
  return differs
}

/** As often as that a text may have been URL-encoded once more */
export const mostAgain = 2

// `%41`, or encoded again `%2541`, and again `%252541`.
const afterPercent = (bytes: Uint8Array, from: number, wanted: number, needle: Needle): number => {
  const { alike, percent } = needle
  for (let [at, again] = [from, 0]; ; at += 2, again++) {
    const end = percent === 'any' || percent === again ? afterHex(bytes, at, 2, wanted, alike) : differs
    if (end !== differs || again === mostAgain) return end
    const isAgain = afterHex(bytes, at, 2, 0x25, exact)
    if (isAgain <= endsEarly) return isAgain
  }
}

/** Entities that have a name, by the byte that they stand for */
export const names: Readonly<Record<number, string>> = {
  0x22: 'quot;',
  0x26: 'amp;',
  0x27: 'apos;',
  0x3c: 'lt;',
  0x3e: 'gt;',
}

const afterEntity = (bytes: Uint8Array, from: number, wanted: number): number => {
  if (bytes[from] !== 0x23) return afterName(bytes, from, names[wanted])
  const isHex = bytes[from + 1] !== undefined && ((bytes[from + 1] ?? 0) | 0x20) === 0x78
  const digits = from + (isHex ? 2 : 1)
  let value = 0
  for (let at = digits; at < digits + 8; at++) {
    const byte = bytes[at]
    if (byte === undefined) return endsEarly
    if (byte === 0x3b) return at > digits && value === wanted && wanted < 0x80 ? at + 1 : differs
    const digit = hexDigit(byte)
    if (digit < 0 || (!isHex && digit > 9)) return differs
    value = value * (isHex ? 16 : 10) + digit
  }
  return differs
}

const afterName = (bytes: Uint8Array, from: number, name: string | undefined): number => {
  if (bytes[from] === undefined) return endsEarly
  if (name === undefined) return differs
  for (let index = 0; index < name.length; index++) {
    const byte = bytes[from + index]
    if (byte === undefined) return endsEarly
    if (byte !== name.charCodeAt(index)) return differs
  }
  return from + name.length
}

/** What a backslash makes of a letter */
export const controls: Readonly<Record<number, number>> = {
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

/** The value of a hexadecimal digit, or -1. */
export const hexDigit = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
