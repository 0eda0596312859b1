// What a server answered, as whoever asked is given it: read, without a secret in it, and without a word in Sallyport's name.
import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../lib/parse-json.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { Redactor } from '../../schema/credentials.ts'
import { answerWithoutOurs } from '../message/credential-meta.ts'
import { readEnvelope, type Response } from '../message/envelope.ts'
import type { Looked } from '../message/line-look.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { unreadableAnswer } from '../message/unavailable.ts'
import { utf8 } from '../message/utf8.ts'

/** What a server answered: its result, without what only Sallyport says, and as the server said it; or its error. */
export type Answer =
  | { readonly kind: 'result'; readonly result: RawJson; readonly said: string }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly raw: string }

/** Reads an error as a server wrote it. */
export function errorAnswer(raw: string): Extract<Answer, { kind: 'error' }> {
  const { code, message } = (parseJson(raw) ?? {}) as { code?: unknown; message?: unknown }
  return {
    kind: 'error',
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : 'an error without a message',
    raw,
  }
}

/**
 * Reads an answer; null where it is neither a result nor an error. `looked` is what was found of secrets in its whole line, if anybody
 * looked. Throws ERR_SECRET_IN_RESULT, and ERR_SERVER_PROTOCOL for what is not UTF-8.
 */
export function answerOf(
  response: Response,
  server: string,
  redactor: Redactor | null,
  looked: Looked | null,
): Answer | null {
  const { text, result, error } = response
  const span = result ?? error
  if (span === null) return null
  const value = Buffer.from(text.slice(span.start, span.end), 'latin1')
  if (!isUtf8(value)) throw unreadableAnswer(server, 'it is not UTF-8')
  const raw = value.toString('utf8')
  const { found, ...clean } = looked ?? redactor?.redact(raw) ?? { text: raw, found: [] }
  if (found.length > 0)
    throw new SecretInResult(server, { found, text: looked === null ? clean.text : valueIn(clean.text) })
  if (result === null) return errorAnswer(raw)
  const bare = answerWithoutOurs(response)
  const given = bare === null ? raw : valueIn(utf8(bare, 0, bare.length))
  return { kind: 'result', result: new RawJson(given), said: raw }
}

/** The result or error in a line, or all of it where there is none to be read any more. */
function valueIn(line: string): string {
  const bytes = Buffer.from(line).toString('latin1')
  const said = readEnvelope(bytes, 0, bytes.length)
  const span = said.kind === 'response' ? (said.result ?? said.error) : null
  return span === null ? line : utf8(bytes, span.start, span.end)
}
