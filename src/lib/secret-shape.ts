// Texts that have the shape of a well-known kind of secret; advisory, since a secret may have any shape.

import { behindLiteral, ownTurn, piecesOf } from './long-text.ts'
import { parseJson } from './parse-json.ts'

interface Shape {
  readonly kind: string
  /** All of the secret */
  readonly pattern: RegExp
  /** What must be somewhere in it, too */
  readonly needs?: readonly RegExp[]
}

/**
 * Whoever is governed writes what these are held against: none may begin at one place, and at the next, what it reads to the end
 * of the text. Hence what looks back from the place that few texts have. And none may ask V8 to come back to each character of a
 * long text, for which it has 64 MiB and then throws: `x{9}x*` asks for no more than its nine, `x{9,}` and `(x|y)*` for all.
 */
const shapes: readonly Shape[] = [
  {
    kind: 'a GitHub token',
    pattern: /\b(gh[pousr]_[A-Za-z0-9]{30}[A-Za-z0-9]*|github_pat_[A-Za-z0-9_]{30}[A-Za-z0-9_]*)/g,
  },
  { kind: 'a GitLab token', pattern: /\bglpat-[A-Za-z0-9_-]{16}[A-Za-z0-9_-]*/g },
  { kind: 'an AWS access key', pattern: /\b(AKIA|ASIA)[A-Z0-9]{16}\b/g },
  { kind: 'a Google API key', pattern: /\bAIza[A-Za-z0-9_-]{30}[A-Za-z0-9_-]*/g },
  { kind: 'a Slack token', pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10}[A-Za-z0-9-]*/g },
  {
    kind: 'an API key',
    pattern: /\b[srp]k[-_][A-Za-z0-9_-]{20}[A-Za-z0-9_-]*/g,
    needs: [/[0-9]/, /[A-Z]/],
  },
  { kind: 'an npm token', pattern: /\bnpm_[A-Za-z0-9]{30}[A-Za-z0-9]*/g },
  {
    kind: 'a JSON web token',
    pattern: /(?<=\beyJ[A-Za-z0-9_-]*[A-Za-z0-9_-]{10})\.eyJ[A-Za-z0-9_-]{10}[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*/g,
  },
  {
    kind: 'a private key',
    pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  },
  { kind: 'a password in an address', pattern: /(?<=[a-z0-9+.-]):\/\/[^\s/:@]*:[^\s/@]+@/gi },
  {
    kind: 'a secret option with its value',
    pattern: /^--?[a-z-]*(token|secret|password|passwd|api-?key|private-key)=[^]+/gi,
  },
]

/** Names the kind of secret that a text looks like, or null. */
export function secretShape(text: string): string | null {
  return shapes.find((shape) => isIn(text, shape))?.kind ?? null
}

function isIn(text: string, shape: Shape): boolean {
  if (text.search(shape.pattern) === -1) return false
  return text.match(shape.pattern)?.some((found) => isWhole(found, shape)) ?? false
}

const isWhole = (found: string, { needs = [] }: Shape): boolean => needs.every((need) => need.test(found))

/** Characters of which each shape, plain or behind JSON's escapes, has at least one: a tenth of the time of looking closer. */
const trace = /[_\-\\@]|AKIA|ASIA|AIza|eyJ/

/**
 * What every JSON text has that holds one of the shapes, unless it hides one behind `\u`: no letter of a secret but a slash
 * needs another escape. Before a secret one may end in a letter or digit, which then is none of a word.
 */
const hints: readonly RegExp[] = [
  /gh[pousr]_[A-Za-z0-9]{30}|github_pat_|glpat-|A[KS]IA[A-Z0-9]{16}|AIza|xox[abeoprs]-/,
  /(?:\b|\\[bfnrt]|\\u[0-9a-f]{4})[srp]k[-_][A-Za-z0-9_-]{20}|npm_[A-Za-z0-9]{30}|eyJ[A-Za-z0-9_-]{10}|PRIVATE KEY/,
  /:\\?\/\\?\/[^\s/@]*@/,
  /"--?[a-z-]*(?:token|secret|password|passwd|api-?key|private-key)=/i,
]
const isHinted = (json: string): boolean => hints.some((hint) => hint.test(json))

/** A text without what has the shape of a secret. */
export interface Shapeless {
  readonly text: string
  readonly hits: number
  /** What one of them looks like; null where there is none */
  readonly kind: string | null
}

/**
 * Replaces whatever has the shape of a secret in a JSON text, in keys and in strings, escaped or not; it stays the JSON
 * text of the same shape. Returns the same text, and 0, where there is nothing.
 */
export function redactShapes(text: string): Shapeless {
  if (!trace.test(text) || !(text.includes('\\u') || isHinted(text))) return { text, hits: 0, kind: null }
  const parts: string[] = []
  let [hits, from] = [0, 0]
  let kind: string | null = null
  for (let at = text.indexOf('"'); at !== -1;) {
    const end = behindLiteral(text, at)
    const kept = redactLiteral(text.slice(at, end))
    if (kept.hits > 0) {
      parts.push(text.slice(from, at), kept.text)
      hits += kept.hits
      kind ??= kept.kind
      from = end
    }
    at = text.indexOf('"', end)
  }
  return { text: hits === 0 ? text : parts.join('') + text.slice(from), hits, kind }
}

function redactLiteral(literal: string): Shapeless {
  const isHidden = literal.includes('\\u')
  const said = isHidden || isHinted(literal) ? decoded(literal) : null
  if (said === null || (isHidden && !isHinted(JSON.stringify(said))))
    return { text: literal, hits: 0, kind: null }
  const { text, ...found } = redactPlain(said)
  return { text: JSON.stringify(text), ...found }
}

/** The same of a long text, in turns of the event loop of its own. */
export async function redactLongShapes(text: string): Promise<Shapeless> {
  const parts: string[] = []
  let hits = 0
  let kind: string | null = null
  for (const piece of piecesOf(text)) {
    await ownTurn()
    const redacted = redactShapes(piece)
    parts.push(redacted.text)
    hits += redacted.hits
    kind ??= redacted.kind
  }
  return { text: hits === 0 ? text : parts.join(''), hits, kind }
}

function redactPlain(text: string): Shapeless {
  let [kept, hits] = [text, 0]
  let kind: string | null = null
  for (const shape of shapes)
    kept = kept.replace(shape.pattern, (found) => {
      if (!isWhole(found, shape)) return found
      hits += 1
      kind ??= shape.kind
      return `[redacted: ${shape.kind}]`
    })
  return { text: kept, hits, kind }
}

function decoded(literal: string): string | null {
  try {
    return parseJson(literal) as string
  } catch {
    return null // no JSON, so no evidence of ours
  }
}
