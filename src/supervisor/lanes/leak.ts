// A server's message with a secret in it: what its caller is told instead, and the same message without.
import type { Redactor } from '../../schema/credentials.ts'
import { type Envelope, readEnvelope } from '../message/envelope.ts'
import type { Looked } from '../message/line-look.ts'
import type { MessageId } from '../message/message-id.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { utf8 } from '../message/utf8.ts'
import type { Verdict } from './wire.ts'

export interface Leak {
  /** Names of the credentials */
  readonly found: readonly string[]
  /** Whose answer it is, or null for what is none */
  readonly answers: MessageId | null
  readonly error: SecretInResult
  /** The message without, in latin1 reading */
  readonly line: string
}

/** Null where nothing is in it, and for what is no message anyway; `looked` is what was found in it before, if anybody looked. */
export function leakIn(
  envelope: Envelope,
  redactor: Redactor,
  server: string,
  looked: Looked | null,
): Leak | null {
  if (envelope.kind === 'invalid') return null
  const { text, found } = looked ?? redactor.redact(utf8(envelope.text, envelope.start, envelope.end))
  if (found.length === 0) return null
  return {
    found,
    answers: envelope.kind === 'response' ? envelope.id : null,
    error: new SecretInResult(server, { text, found }),
    line: Buffer.from(text, 'utf8').toString('latin1'),
  }
}

/** The verdict on a line that was written anew: where it would pass, it takes the place of the first. */
export function anew(line: string, judge: (envelope: Envelope) => Verdict): Verdict {
  const verdict = judge(readEnvelope(line, 0, line.length))
  return verdict === 'pass' ? { replacement: `${line}\n` } : verdict
}
