// Finds needles in bytes that come in pieces.
import { beginnings } from './beginnings.ts'
import { differs, type Effort, endsEarly, matchAt, type Needle } from './needle.ts'
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

/** Bytes of needles that are compared for each byte that is scanned, beside one for each needle, and for a scan in any case */
const effortOf = { byte: 16, scan: 65_536 } as const
/** Bytes that one byte of a needle may be written in, with what stands before it: `\\r\\n` and `&#x0000041;` */
const widest = 15

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
 * but escapes makes nobody compare every needle at each. A value that repeats itself can be compared for long at every place of
 * a text that does so, too: from where a scan has taken its measure, which grows with the bytes and with the number of needles,
 * and not with their length, all is taken for a hit. What may have begun in it and go on in the next piece is scanned again.
 */
export class Scanner {
  readonly #needles: readonly Ranked[]
  /** The needles that may begin with each byte */
  readonly #byFirst: readonly (readonly Ranked[])[]
  readonly #pairs = new Uint32Array(65_536 / 32)
  readonly #firsts = new Uint8Array(256)
  /** Bytes at the end of a piece in which a needle may have begun */
  readonly #reach: number

  constructor(needles: readonly Needle[]) {
    this.#reach = widest * Math.max(0, ...needles.map(({ text }) => text.length))
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
   * Scans from `from`. Hits may overlap, since a secret that begins within another is one too; those of one credential are
   * one. Where `isLast` says that no more bytes come, everything is decided.
   */
  scan(bytes: Uint8Array, from: number, isLast: boolean): Scan {
    const hits: Hit[] = []
    const { length } = bytes
    const effort = { left: effortOf.scan + (length - from) * (effortOf.byte + this.#needles.length) }
    for (let at = this.#next(bytes, from); at < length; at = this.#next(bytes, at + 1)) {
      const { hit, isOpen, compared } = this.#judge(bytes, at, effort)
      if (effort.left < 0) {
        add(hits, { start: at, end: length, credential: compared })
        return { hits, decidedTo: isLast ? length : Math.max(at, length - this.#reach) }
      }
      if (isOpen && !isLast) return { hits, decidedTo: at }
      if (hit !== null) add(hits, hit)
    }
    return { hits, decidedTo: length }
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

  #judge(bytes: Uint8Array, start: number, effort: Effort): Judged {
    const firsts = mayStandFor(bytes, start)
    const judged = new Judged(bytes, start, effort)
    if (firsts === null) for (const needle of this.#needles) judged.compare(needle)
    else for (const first of firsts) for (const needle of this.#byFirst[first] ?? []) judged.compare(needle)
    return judged
  }
}

/** Adds a hit; one that overlaps the last of its credential makes that longer. */
function add(hits: Hit[], hit: Hit): void {
  const last = hits.at(-1)
  if (last === undefined || last.credential !== hit.credential || hit.start >= last.end) hits.push(hit)
  else if (hit.end > last.end) hits[hits.length - 1] = { ...last, end: hit.end }
}

/** What begins at one place: the longest, and of equally long ones that which comes first among the needles. */
class Judged {
  hit: Hit | null = null
  isOpen = false
  /** The credential that was compared last */
  compared = ''
  readonly #effort: Effort
  #rank = 0
  readonly #bytes: Uint8Array
  readonly #start: number

  constructor(bytes: Uint8Array, start: number, effort: Effort) {
    this.#bytes = bytes
    this.#start = start
    this.#effort = effort
  }

  compare({ needle, rank }: Ranked): void {
    const start = this.#start
    if (this.#effort.left < 0) return
    this.compared = needle.credential
    const end = matchAt(this.#bytes, start, needle, this.#effort)
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
