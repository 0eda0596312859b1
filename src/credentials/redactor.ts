// Takes secrets out of texts and streams, whichever way they are written.
import type { MaskingStream, Redactor } from '../schema/credentials.ts'
import type { Hit, Scanner } from './scanner.ts'

/** Gives the scanner for the values known now, or null where there are none. */
export type ScannerNow = () => Scanner | null

/** Writes a hit: `marks` as `[redacted:<credential>]`, `asterisks` as that many of them, so that lengths stay true. */
type Style = 'marks' | 'asterisks'

const nothing = Buffer.alloc(0)

/** Returns a redactor that always knows what `scannerNow` knows, in streams that began before too. */
export const createRedactor = (scannerNow: ScannerNow): Redactor => ({
  redact(text) {
    const scanner = scannerNow()
    if (scanner === null) return { text, found: [] }
    const bytes = Buffer.from(text)
    const { hits } = scanner.scan(bytes, 0, true)
    if (hits.length === 0) return { text, found: [] }
    return {
      text: render(bytes, bytes.length, merged(hits), 'marks').toString(),
      found: [...new Set(hits.map(({ credential }) => credential))],
    }
  },
  stream: () => redactingStream(scannerNow, 'marks'),
  mask: () => redactingStream(scannerNow, 'asterisks'),
})

/** A hit as it is rendered: without a mark where the mark was written before. */
interface Span extends Hit {
  readonly isMarked: boolean
}

/** Letters of what may become a secret that a message may end with: half of the shortest that is swapped */
const openLetters = 8

const redactingStream = (scannerNow: ScannerNow, style: Style): MaskingStream => {
  const found = new Set<string>()
  let held: Buffer = nothing
  // What of `held` belongs to a hit that has been begun
  let coveredTo = 0
  // What of `held` has been passed on already
  let settledTo = 0
  const begun = (): readonly Span[] =>
    coveredTo === 0 ? [] : [{ start: 0, end: coveredTo, credential: '', isMarked: true }]

  const step = (chunk: Uint8Array, isLast: boolean): Uint8Array => {
    const scanner = scannerNow()
    if (scanner === null && held.length === 0) return chunk
    const bytes = held.length === 0 ? asBuffer(chunk) : Buffer.concat([held, chunk])
    const { hits, decidedTo } = scanner?.scan(bytes, 0, isLast) ?? { hits: [], decidedTo: bytes.length }
    for (const { credential } of hits) found.add(credential)
    held = decidedTo === bytes.length ? nothing : Buffer.from(bytes.subarray(decidedTo))
    const from = Math.min(settledTo, decidedTo)
    settledTo -= from
    if (hits.length === 0 && coveredTo === 0) return bytes.subarray(from, decidedTo)
    const spans = merged(hits, begun())
    coveredTo = Math.max(0, (spans.at(-1)?.end ?? 0) - decidedTo)
    return render(bytes, decidedTo, spans, style).subarray(from)
  }
  return {
    push: (chunk) => step(chunk, false),
    flush: () => step(nothing, true),
    settle() {
      const open = { start: 0, end: held.length, credential: '', isMarked: true }
      const spans = held.length < openLetters ? begun() : [open]
      const passed = render(held, held.length, spans, 'asterisks').subarray(settledTo)
      settledTo = held.length
      return passed
    },
    found,
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const merged = (hits: readonly Hit[], begun: readonly Span[] = []): readonly Span[] => {
  const spans = [...begun]
  for (const hit of hits) {
    const last = spans.at(-1)
    if (last !== undefined && hit.start < last.end)
      spans[spans.length - 1] = { ...last, end: Math.max(last.end, hit.end) }
    else spans.push({ ...hit, isMarked: false })
  }
  return spans
}

const render = (bytes: Buffer, to: number, spans: readonly Span[], style: Style): Buffer => {
  const parts: Buffer[] = []
  let at = 0
  for (const { start, end, credential, isMarked } of spans) {
    if (start >= to) break
    parts.push(bytes.subarray(at, start))
    at = Math.min(end, to)
    if (style === 'asterisks') parts.push(Buffer.alloc(at - start, '*'))
    else if (!isMarked) parts.push(Buffer.from(`[redacted:${credential}]`))
  }
  return Buffer.concat([...parts, bytes.subarray(at, to)])
}

/** Returns a watch that holds nothing back and names the credential whose value a chunk completes, for what is cut off. */
export const leakWatch = (scannerNow: ScannerNow): ((chunk: Uint8Array) => string | null) => {
  let held: Buffer = nothing
  return (chunk) => {
    const scanner = scannerNow()
    if (scanner === null) return null
    const bytes = held.length === 0 ? asBuffer(chunk) : Buffer.concat([held, chunk])
    const { hits, decidedTo } = scanner.scan(bytes, 0, false)
    held = Buffer.from(bytes.subarray(decidedTo))
    return hits[0]?.credential ?? null
  }
}
