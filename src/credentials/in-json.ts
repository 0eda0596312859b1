// What is taken out of a JSON text so that a JSON text is left: each string is read first, and a number becomes a string.
import { behindLiteral } from '../lib/long-text.ts'
import type { Redaction } from '../schema/redactor.ts'

/** What becomes of the parts of a JSON text. */
export interface Parts {
  /** A string's text as it is to be, or as it is */
  readonly text: (said: string, isName: boolean) => string
  /** The text that is to stand for a number, or null */
  readonly number: (written: string) => string | null
}

/** Returns the same text, and 0, where nothing becomes of anything. */
export function redactJson(json: string, parts: Parts): Redaction {
  const kept: string[] = []
  let hits = 0
  const keep = (was: string, is: string): void => {
    kept.push(is)
    if (is !== was) hits += 1
  }
  for (let from = 0; from < json.length;) {
    const quote = json.indexOf('"', from)
    const at = quote === -1 ? json.length : quote
    const between = json.slice(from, at)
    keep(between, withNumbers(between, parts))
    from = quote === -1 ? at : behindLiteral(json, at)
    const literal = json.slice(at, from)
    keep(literal, withText(literal, isFollowedByColon(json, from), parts))
  }
  return { text: hits === 0 ? json : kept.join(''), hits }
}

const withNumbers = (between: string, { number }: Parts): string =>
  between.replaceAll(/-?\d[-+.\dEe]*/g, (written) => {
    const text = number(written)
    return text === null ? written : JSON.stringify(text)
  })

function withText(literal: string, isName: boolean, { text }: Parts): string {
  if (literal.length <= 2) return literal
  const said = literal.includes('\\') ? read(literal) : literal.slice(1, -1)
  const kept = text(said, isName)
  return kept === said ? literal : JSON.stringify(kept)
}

/** Of a text of more than a few spaces before it nothing is known to be a name. */
const isFollowedByColon = (json: string, end: number): boolean => /^\s*:/.test(json.slice(end, end + 16))

function read(literal: string): string {
  try {
    return JSON.parse(literal) as string
  } catch {
    return literal.slice(1, -1) // a piece of no JSON
  }
}
