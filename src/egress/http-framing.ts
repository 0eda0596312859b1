// Where the body of a request ends: a second request behind it would be one that nobody judged.
import type { Head } from './http-head.ts'
import { Refusal } from './refusal.ts'

/** How the body's end is known. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }

/** Returns the one way in which the body ends; throws bad-request where there are two, or one that is not plain. */
export function framingOf({ fields, version }: Head): Framing {
  const values = (wanted: string): readonly string[] =>
    fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
  const lengths = values('content-length')
  const codings = values('transfer-encoding')
  if (lengths.length + codings.length > 1) throw new Refusal('bad-request')
  const [length] = lengths
  const [coding] = codings
  if (coding !== undefined) {
    if (version === '1.0' || coding.toLowerCase() !== 'chunked') throw new Refusal('bad-request')
    return { kind: 'chunked' }
  }
  if (length === undefined) return { kind: 'none' }
  if (!/^(0|[1-9][0-9]{0,14})$/.test(length)) throw new Refusal('bad-request')
  return { kind: 'length', bytes: Number(length) }
}

/** Looks at what a chunked body carries; a reason refuses it. */
export type Look = (payload: Uint8Array) => string | null

/**
 * Returns a check of the body's chunks as they pass: null while they are the body's, bad-body for coding that is not
 * plain (extensions, trailers, bare line feeds), second-request for any byte behind its end.
 */
export function bodyCheck(framing: Framing, look: Look): (chunk: Uint8Array) => string | null {
  const body = bodyOf(framing, look)
  return (chunk) => {
    try {
      return body.take(chunk) < chunk.length ? 'second-request' : null
    } catch (error) {
      return Refusal.from(error).reason
    }
  }
}

/** A body as it passes: `take` returns how many of the bytes are its own, and throws bad-body, or what `look` says. */
export function bodyOf(framing: Framing, look: Look): { take(chunk: Uint8Array): number } {
  if (framing.kind === 'chunked') return chunkedBody(look)
  let left = framing.kind === 'length' ? framing.bytes : 0
  return {
    take({ length }) {
      const used = Math.min(left, length)
      left -= used
      return used
    },
  }
}

const [carriageReturn, lineFeed] = [13, 10]
const maxSizeDigits = 8

/** size CRLF bytes CRLF …, `0` CRLF CRLF: one state for each place where a byte may stand. */
function chunkedBody(look: Look): { take(chunk: Uint8Array): number } {
  let state: 'size' | 'size-end' | 'bytes' | 'bytes-cr' | 'bytes-lf' | 'last-cr' | 'last-lf' | 'over' = 'size'
  let digits = ''
  let left = 0
  const step = (byte: number): boolean => {
    switch (state) {
      case 'size':
        if (byte === carriageReturn && digits !== '') state = 'size-end'
        else digits += String.fromCharCode(byte)
        return state === 'size-end' || (/^[0-9a-f]+$/i.test(digits) && digits.length <= maxSizeDigits)
      case 'size-end':
        left = Number.parseInt(digits, 16)
        digits = ''
        state = left === 0 ? 'last-cr' : 'bytes'
        return byte === lineFeed
      case 'bytes-cr':
        state = 'bytes-lf'
        return byte === carriageReturn
      case 'bytes-lf':
        state = 'size'
        return byte === lineFeed
      case 'last-cr':
        state = 'last-lf'
        return byte === carriageReturn
      case 'last-lf':
        state = 'over'
        return byte === lineFeed
      case 'bytes':
      case 'over':
        return false
    }
  }
  const take = (chunk: Uint8Array): number => {
    for (let at = 0; at < chunk.length;) {
      if (state === 'over') return at
      if (state === 'bytes') {
        const taken = Math.min(left, chunk.length - at)
        const reason = look(chunk.subarray(at, at + taken))
        if (reason !== null) throw new Refusal(reason)
        at += taken
        left -= taken
        if (left === 0) state = 'bytes-cr'
      } else if (!step(chunk[at++] ?? 0)) throw new Refusal('bad-body')
    }
    return chunk.length
  }
  return { take }
}
