// What persons told servers that asked them: taken out of what is recorded of those servers, and of nothing else.
import type { RedactingStream } from '../schema/credentials.ts'
import type { Redaction, Redactor } from '../schema/redactor.ts'
import { ownTurn, piecesOf } from '../lib/long-text.ts'
import { type Parts, redactJson } from './in-json.ts'
import { createRedactor } from './redactor.ts'
import { KnownValues, rememberedValues } from './values.ts'

/** Principals' servers whose answers are remembered; the one that was answered longest ago is forgotten first */
const mostScopes = 128
/** Characters in which a long answer is looked for, one piece after the other */
const pieceCharacters = 256
/** Answers shorter than this, characters, are words and counts that stand everywhere */
const leastConfided = 4
/** Names of members shorter than this, characters, are the protocol's more often than a person's */
const leastName = 8
/** What any JSON says */
const common: ReadonlySet<string> = new Set(['true', 'false', 'null'])
const mark = 'an answer'

/** Per server and principal the pieces that were answered last, as many as `KnownValues` remembers of one credential. */
export class Confided {
  readonly #scopes = new Map<string, ConfidedTo>()

  /** A principal's person gave the server these values. */
  add(server: string, principal: string, values: readonly string[]): void {
    const pieces = values.flatMap((value) => piecesIn(value)).slice(0, rememberedValues)
    if (pieces.length === 0) return
    const key = keyOf(server, principal)
    const known = this.#scopes.get(key) ?? new ConfidedTo()
    this.#scopes.delete(key)
    this.#scopes.set(key, known)
    known.add(pieces)
    const [oldest] = this.#scopes.keys()
    if (this.#scopes.size > mostScopes && oldest !== undefined) this.#forget(oldest)
  }

  /** What takes them out of records; null where there are none. */
  of(server: string, principal: string): ConfidedTo | null {
    return this.#scopes.size === 0 ? null : (this.#scopes.get(keyOf(server, principal)) ?? null)
  }

  /** Takes them out of a stream, those too that are given while it flows. */
  stream(server: string, principal: string): RedactingStream {
    return createRedactor(() => this.of(server, principal)?.scanner() ?? null).stream()
  }

  #forget(key: string): void {
    this.#scopes.get(key)?.[Symbol.dispose]()
    this.#scopes.delete(key)
  }
}

/** What one principal's persons told one server. */
export class ConfidedTo implements Redactor, Disposable {
  readonly #values = new KnownValues()
  readonly scanner = this.#values.scanner
  readonly #redactor = createRedactor(this.scanner)
  readonly #parts: Parts = {
    text: (said, isName) => (isName && said.length < leastName ? said : this.words(said).text),
    number: (written) => {
      const { text } = this.words(written)
      return text === `[redacted:${mark}]` ? text : null
    },
  }

  add(pieces: readonly string[]): void {
    for (const piece of pieces) this.#values.add(mark, Buffer.from(piece))
  }

  /** Of a text that is no JSON. */
  words(text: string): Redaction {
    const { text: kept, found } = this.#redactor.redact(text)
    return { text: kept, hits: found.length }
  }

  /** Of a JSON text, whose short names stay; a number is found as a whole. */
  redact(json: string): Redaction {
    const hits = this.scanner()?.scan(Buffer.from(json), 0, true).hits ?? []
    return hits.length === 0 ? { text: json, hits: 0 } : redactJson(json, this.#parts, hits)
  }

  async redactLong(json: string): Promise<Redaction> {
    const parts: string[] = []
    let hits = 0
    for (const piece of piecesOf(json)) {
      await ownTurn()
      const kept = this.redact(piece)
      parts.push(kept.text)
      hits += kept.hits
    }
    return { text: hits === 0 ? json : parts.join(''), hits }
  }

  [Symbol.dispose](): void {
    this.#values[Symbol.dispose]()
  }
}

const keyOf = (server: string, principal: string): string => `${principal} ${server}`

function piecesIn(value: string): readonly string[] {
  if (value.length < leastConfided || common.has(value.toLowerCase())) return []
  if (value.length <= pieceCharacters) return [value]
  const characters = Array.from(value.slice(0, pieceCharacters * rememberedValues))
  const count = Math.ceil(characters.length / pieceCharacters)
  const length = Math.ceil(characters.length / count)
  return Array.from({ length: count }, (_, n) => characters.slice(n * length, (n + 1) * length).join(''))
}
