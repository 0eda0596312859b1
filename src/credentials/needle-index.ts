// Finds any of many random texts in what passes, at the price of one look for every sixteen bytes.

/** Every run of so many bytes holds a gram that is looked at */
const stride = 16
const gramBytes = 4
/** Shortest text that can be looked for, bytes */
export const leastNeedle = stride + gramBytes - 1

interface Entry<T> {
  readonly needle: Buffer
  readonly offset: number
  readonly what: T
}

/**
 * A set of texts, each with what it stands for. The grams at sixteen offsets in a row of each are in a table, so that one of
 * them is met wherever the text stands; only what is met is compared. It takes random texts: of alike ones many share a gram.
 */
export class NeedleIndex<T> {
  readonly #grams = new Map<number, Entry<T>[]>()
  #longest = 0

  /** Bytes of the longest text so far */
  get longest(): number {
    return this.#longest
  }

  add(text: string, what: T): void {
    const needle = ofItsOwn(text)
    if (needle.length < leastNeedle)
      throw new RangeError(`got a text of ${needle.length} bytes; expected at least ${leastNeedle}`)
    this.#longest = Math.max(this.#longest, needle.length)
    for (const [gram, offset] of gramsOf(needle)) {
      const entries = this.#grams.get(gram)
      if (entries === undefined) this.#grams.set(gram, [{ needle, offset, what }])
      else entries.push({ needle, offset, what })
    }
  }

  remove(text: string): void {
    const needle = Buffer.from(text)
    for (const [gram] of gramsOf(needle)) {
      const left = this.#grams.get(gram)?.filter((entry) => !entry.needle.equals(needle)) ?? []
      if (left.length === 0) this.#grams.delete(gram)
      else this.#grams.set(gram, left)
    }
  }

  /** What the first text stands for that is in the bytes and counts; or null. */
  find(bytes: Buffer, counts: (what: T) => boolean): T | null {
    if (this.#grams.size === 0) return null
    for (let at = 0; at + gramBytes <= bytes.length; at += stride) {
      const entries = this.#grams.get(bytes.readInt32LE(at))
      if (entries === undefined) continue
      for (const { needle, offset, what } of entries) {
        const start = at - offset
        const end = start + needle.length
        if (start < 0 || end > bytes.length || !counts(what)) continue
        if (needle.compare(bytes, start, end) === 0) return what
      }
    }
    return null
  }
}

// A few bytes of Node's pool of 64 KiB would keep all of it for as long as they are kept.
const ofItsOwn = (text: string): Buffer => {
  const bytes = Buffer.alloc(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

// Of the end: what many have in common, a prefix, is at the beginning
function* gramsOf(needle: Buffer): Generator<readonly [gram: number, offset: number]> {
  const from = needle.length - leastNeedle
  for (let offset = from; offset < from + stride; offset++) yield [needle.readInt32LE(offset), offset]
}
