// Whether an object has a key twice.

/** Keys of one object; most have few, for which a list is quicker than a set. */
export class KeySet {
  readonly #few: string[] = []
  #many: Set<string> | null = null

  constructor(members: readonly { readonly key: string }[] | null) {
    for (const { key } of members ?? []) this.add(key)
  }

  /** False when it was there already. */
  add(key: string): boolean {
    if (this.#many !== null) {
      const before = this.#many.size
      return this.#many.add(key).size > before
    }
    if (this.#few.includes(key)) return false
    this.#few.push(key)
    if (this.#few.length > 12) this.#many = new Set(this.#few)
    return true
  }
}

const backslash = 92
/** What stands behind a backslash, but for `u` */
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/**
 * A key as it is compared with the others of its object: without escapes, in the latin1 reading of UTF-8. Nothing is decoded
 * that can be compared as it stands.
 */
export function comparable(text: string, start: number, end: number): string {
  for (let at = start; at < end; at++)
    if (text.charCodeAt(at) === backslash) return unescaped(text, start, at, end)
  return text.slice(start, end)
}

/** `at` is where the first escape stands. */
function unescaped(text: string, start: number, at: number, end: number): string {
  let key = text.slice(start, at)
  for (let here = at; here < end;) {
    const next = text.charAt(here + 1)
    if (text.charCodeAt(here) !== backslash) key += text.charAt(here++)
    else if (next !== 'u') {
      key += escapes[next] ?? next
      here += 2
    } else {
      const code = unit(text, here)
      const low = isHigh(code) && text.startsWith('\\u', here + 6) ? unit(text, here + 6) : 0
      const isPair = isLow(low)
      key += bytesOf(isPair ? (code - 0xd800) * 0x400 + low - 0xdc00 + 0x10000 : code)
      here += isPair ? 12 : 6
    }
  }
  return key
}

const unit = (text: string, at: number): number => Number.parseInt(text.slice(at + 2, at + 6), 16)
const isHigh = (code: number): boolean => code >= 0xd800 && code < 0xdc00
const isLow = (code: number): boolean => code >= 0xdc00 && code < 0xe000

/** The bytes of a character in UTF-8, a character each; half of a pair has three, which no text has. */
function bytesOf(code: number): string {
  if (code < 0x80) return String.fromCharCode(code)
  const more = (shift: number): number => 0x80 | ((code >> shift) & 0x3f)
  if (code < 0x800) return String.fromCharCode(0xc0 | (code >> 6), more(0))
  if (code < 0x10000) return String.fromCharCode(0xe0 | (code >> 12), more(6), more(0))
  return String.fromCharCode(0xf0 | (code >> 18), more(12), more(6), more(0))
}
