// Finds needles in bytes that come in pieces.
import { beginnings, differs, endsEarly, matchAt, type Needle } from './needle.ts'

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

/**
 * A set of needles.
 *
 * A table of the pairs of bytes with which one may begin settles nearly every position with one look; only what passes it
 * is compared. It depends on nothing that the bytes are, so that no input is slower than the needles are many.
 */
export class Scanner {
  readonly #needles: readonly Needle[]
  readonly #pairs = new Uint32Array(65_536 / 32)
  readonly #firsts = new Uint8Array(256)

  constructor(needles: readonly Needle[]) {
    this.#needles = needles
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
    let hit: Hit | null = null
    let isOpen = false
    for (const needle of this.#needles) {
      const end = matchAt(bytes, start, needle)
      if (end === differs) continue
      if (end === endsEarly) isOpen = true
      else if (hit === null || end > hit.end) hit = { start, end, credential: needle.credential }
    }
    return { hit, isOpen }
  }
}
