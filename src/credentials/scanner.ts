// Finds needles in bytes that come in pieces.
import { beginnings, differs, endsEarly, matchAt, type Needle } from './needle.ts'
import { mayStandFor } from './written-byte.ts'

/** Bytes that are, or belong to, a secret. */
export interface Hit {
  readonly start: number
  readonly end: number
  readonly credential: string
}

/** What was found in some bytes: the hits, and from where on more bytes are needed to tell. */
export interface Scan {
  readonly hits: readonly Hit[]
  readonly decidedTo: number
}

/** A needle and its place among all. */
interface Ranked {
  readonly needle: Needle
  readonly rank: number
}

/**
 * A set of needles.
 *
 * A table of the pairs of bytes with which one may begin settles nearly every position with one look. Of what passes it the
 * first byte is read, however it is written, and only needles that begin with that one are compared: whoever writes nothing
 * but escapes makes nobody compare every needle at each.
 */
export class Scanner {
  readonly #needles: readonly Ranked[]
  /** The needles that may begin with each byte */
  readonly #byFirst: readonly (readonly Ranked[])[]
  readonly #pairs = new Uint32Array(65_536 / 32)
  readonly #firsts = new Uint8Array(256)

  constructor(needles: readonly Needle[]) {
    this.#needles = needles.map((needle, rank) => ({ needle, rank }))
    this.#byFirst = Array.from({ length: 256 }, (_, first) =>
      this.#needles.filter(({ needle: { text, alike } }) => alike[first] === alike[text[0] ?? 0]),
    )
    for (const needle of needles)
      beginnings(needle, (first, second) => {
        if (second === null) this.#firsts[first] = 1
        else
          this.#pairs[(first << 3) | (second >> 5)] =
            (this.#pairs[(first << 3) | (second >> 5)] ?? 0) | (1 << (second & 31))
      })
  }

  /**
   * Scans from `from`. Hits may overlap, since a secret that begins within another is one too. Where `isLast` says that
   * no more bytes come, everything is decided.
   */
  scan(bytes: Uint8Array, from: number, isLast: boolean): Scan {
    const hits: Hit[] = []
    for (let at = this.#next(bytes, from); at < bytes.length; at = this.#next(bytes, at + 1)) {
      const { hit, isOpen } = this.#judge(bytes, at)
      if (isOpen && !isLast) return { hits, decidedTo: at }
      if (hit !== null) hits.push(hit)
    }
    return { hits, decidedTo: bytes.length }
  }

  #next(bytes: Uint8Array, from: number): number {
    const pairs = this.#pairs
    const last = bytes.length - 1
    for (let at = from; at < last; at++) {
      const second = bytes[at + 1] as number
      if ((((pairs[((bytes[at] as number) << 3) | (second >> 5)] as number) >>> (second & 31)) & 1) === 1)
        return at
    }
    return from <= last && this.#firsts[bytes[last] ?? 0] === 1 ? last : bytes.length
  }

  #judge(bytes: Uint8Array, start: number): { readonly hit: Hit | null; readonly isOpen: boolean } {
    const firsts = mayStandFor(bytes, start)
    const judged = new Judged(bytes, start)
    if (firsts === null) for (const needle of this.#needles) judged.compare(needle)
    else for (const first of firsts) for (const needle of this.#byFirst[first] ?? []) judged.compare(needle)
    return judged
  }
}

/** What begins at one place: the longest, and of equally long ones that which comes first among the needles. */
class Judged {
  hit: Hit | null = null
  isOpen = false
  #rank = 0
  readonly #bytes: Uint8Array
  readonly #start: number

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes
    this.#start = start
  }

  compare({ needle, rank }: Ranked): void {
    const start = this.#start
    const end = matchAt(this.#bytes, start, needle)
    if (end === differs) return
    if (end === endsEarly) {
      this.isOpen = true
      return
    }
    const { hit } = this
    if (hit !== null && (end < hit.end || (end === hit.end && rank >= this.#rank))) return
    this.hit = { start, end, credential: needle.credential }
    this.#rank = rank
  }
}
