// Texts that have the shape of a well-known kind of secret; advisory, since a secret may have any shape.

import { ownTurn, piecesOf } from './long-text.ts'

interface Shape {
  readonly kind: string
  /** What gives it away */
  readonly pattern: RegExp
  /** All of the secret, where it goes on behind that */
  readonly whole?: RegExp
}

/**
 * Whoever is governed writes what these are held against: none may begin at one place, and at the next, what it reads to the end
 * of the text. Hence the bounds, and what looks back from the place that few texts have.
 */
const shapes: readonly Shape[] = [
  { kind: 'a GitHub token', pattern: /\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})/ },
  { kind: 'a GitLab token', pattern: /\bglpat-[A-Za-z0-9_-]{16,}/ },
  { kind: 'an AWS access key', pattern: /\b(AKIA|ASIA)[A-Z0-9]{16}\b/ },
  { kind: 'a Google API key', pattern: /\bAIza[A-Za-z0-9_-]{30,}/ },
  { kind: 'a Slack token', pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/ },
  {
    kind: 'an API key',
    pattern: /\b[srp]k[-_](?=[A-Za-z_-]{0,64}[0-9])(?=[a-z0-9_-]{0,64}[A-Z])[A-Za-z0-9_-]{20,}/,
  },
  { kind: 'an npm token', pattern: /\bnpm_[A-Za-z0-9]{30,}/ },
  {
    kind: 'a JSON web token',
    pattern: /(?<=\beyJ[A-Za-z0-9_-]{10,})\.eyJ[A-Za-z0-9_-]{10,}\./,
    whole: /(?<=\beyJ[A-Za-z0-9_-]{10,})\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/,
  },
  {
    kind: 'a private key',
    pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
    whole: /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/,
  },
  { kind: 'a password in an address', pattern: /(?<=[a-z0-9+.-]):\/\/[^\s/:@]*:[^\s/@]+@/i },
  {
    kind: 'a secret option with its value',
    pattern: /^--?[a-z-]*(token|secret|password|passwd|api-?key|private-key)=./i,
    whole: /^--?[a-z-]*(token|secret|password|passwd|api-?key|private-key)=[^]+/i,
  },
]

/** Names the kind of secret that a text looks like, or null. */
export function secretShape(text: string): string | null {
  return shapes.find(({ pattern }) => pattern.test(text))?.kind ?? null
}

const everywhere = shapes.map(({ kind, pattern, whole }) => {
  const { source, flags } = whole ?? pattern
  return { word: `[redacted: ${kind}]`, pattern: new RegExp(source, `${flags}g`) }
})

/** Characters of which each shape, plain or behind JSON's escapes, has at least one: a tenth of the time of looking closer. */
const trace = /[_\-\\@]|AKIA|ASIA|AIza|eyJ/

/**
 * What every JSON text has that holds one of the shapes, unless it hides one behind `\u`: no letter of a secret but a slash
 * needs another escape. Before a secret one may end in a letter or digit, which then is none of a word.
 */
const hints: readonly RegExp[] = [
  /gh[pousr]_[A-Za-z0-9]{30}|github_pat_|glpat-|A[KS]IA[A-Z0-9]{16}|AIza|xox[abeoprs]-/,
  /(?:\b|\\[bfnrt]|\\u[0-9a-f]{4})[srp]k[-_][A-Za-z0-9_-]{20}|npm_[A-Za-z0-9]{30}|eyJ[A-Za-z0-9_-]{10}|PRIVATE KEY/,
  /:\\?\/\\?\/(?:[^\s"/@\\]|\\[^/])*@/,
  /"--?[a-z-]*(?:token|secret|password|passwd|api-?key|private-key)=/i,
]
const isHinted = (json: string): boolean => hints.some((hint) => hint.test(json))

const jsonString = /"(?:[^"\\]|\\.)*"/g

/**
 * Replaces whatever has the shape of a secret in a JSON text, in keys and in strings, escaped or not; it stays the JSON
 * text of the same shape. Returns the same text, and 0, where there is nothing.
 */
export function redactShapes(text: string): { readonly text: string; readonly hits: number } {
  if (!trace.test(text) || !(text.includes('\\u') || isHinted(text))) return { text, hits: 0 }
  let hits = 0
  const redacted = text.replace(jsonString, (literal) => {
    const isHidden = literal.includes('\\u')
    if (!isHidden && !isHinted(literal)) return literal
    const said = decoded(literal)
    if (said === null || (isHidden && !isHinted(JSON.stringify(said)))) return literal
    const kept = redactPlain(said)
    if (kept.hits === 0) return literal
    hits += kept.hits
    return JSON.stringify(kept.text)
  })
  return { text: hits === 0 ? text : redacted, hits }
}

/** The same of a long text, in turns of the event loop of its own. */
export async function redactLongShapes(text: string): Promise<ReturnType<typeof redactShapes>> {
  const parts: string[] = []
  let hits = 0
  for (const piece of piecesOf(text)) {
    await ownTurn()
    const redacted = redactShapes(piece)
    parts.push(redacted.text)
    hits += redacted.hits
  }
  return { text: hits === 0 ? text : parts.join(''), hits }
}

function redactPlain(text: string): { readonly text: string; readonly hits: number } {
  let [kept, hits] = [text, 0]
  for (const { word, pattern } of everywhere)
    kept = kept.replace(pattern, () => {
      hits += 1
      return word
    })
  return { text: kept, hits }
}

function decoded(literal: string): string | null {
  try {
    return JSON.parse(literal) as string
  } catch {
    return null // no JSON, so no evidence of ours
  }
}
