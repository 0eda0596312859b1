// What is taken out of a JSON text so that a JSON text is left: each string is read first, and a number becomes a string.
import { behindLiteral } from '../lib/long-text.ts'
import { parseJson } from '../lib/parse-json.ts'
import type { Redaction } from '../schema/redactor.ts'

/** What becomes of the parts of a JSON text. */
export interface Parts {
  /** A string's text as it is to be, or as it is */
  readonly text: (said: string, isName: boolean) => string
  /** The text that is to stand for a number, or null */
  readonly number: (written: string) => string | null
}

/** Bytes of the text in which something may be. */
export interface Place {
  readonly start: number
  readonly end: number
}

/** Looks at what is in those places, which are in order, or at all of it. Returns the same text, and 0, where nothing becomes of it. */
export function redactJson(json: string, parts: Parts, places: readonly Place[] | null = null): Redaction {
  const bytes = Buffer.from(json).toString('latin1')
  const kept: string[] = []
  let [hits, copied, next] = [0, 0, 0]
  const isLookedAt = (from: number, to: number): boolean => {
    if (places === null) return from < to
    while ((places[next]?.end ?? Infinity) <= from) next += 1
    return (places[next]?.start ?? Infinity) < to
  }
  const put = (from: number, to: number, text: string): void => {
    const was = bytes.slice(from, to)
    if (text === was) return
    kept.push(bytes.slice(copied, from), text)
    copied = to
    hits += 1
  }
  for (let from = 0; from < bytes.length;) {
    const quote = bytes.indexOf('"', from)
    const at = quote === -1 ? bytes.length : quote
    if (isLookedAt(from, at)) put(from, at, withNumbers(bytes.slice(from, at), parts))
    from = quote === -1 ? at : behindLiteral(bytes, at)
    if (isLookedAt(at, from))
      put(at, from, withText(bytes.slice(at, from), isFollowedByColon(bytes, from), parts))
  }
  const text = (): string => unicode(kept.join('') + bytes.slice(copied))
  return { text: hits === 0 ? json : text(), hits }
}

const unicode = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')
const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

const withNumbers = (between: string, { number }: Parts): string =>
  between.replaceAll(/-?\d[-+.\dEe]*/g, (written) => {
    const text = number(written)
    return text === null ? written : latin1(JSON.stringify(text))
  })

function withText(literal: string, isName: boolean, { text }: Parts): string {
  if (literal.length <= 2) return literal
  const said = read(unicode(literal))
  const kept = text(said, isName)
  return kept === said ? literal : latin1(JSON.stringify(kept))
}

/** Of a text of more than a few spaces before it nothing is known to be a name. */
const isFollowedByColon = (json: string, end: number): boolean => /^\s*:/.test(json.slice(end, end + 16))

function read(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1)
  try {
    return parseJson(literal) as string
  } catch {
    return literal.slice(1, -1) // a piece of no JSON
  }
}
