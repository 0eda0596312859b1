// What a host answers, on its way to the client: readable, without secrets, and framed anew.
import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import type { RedactingStream, Redactor } from '../../schema/credentials.ts'
import { decoders } from './decoders.ts'
import { Refusal } from './refusal.ts'
import { type Header, pairs } from './request-head.ts'

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** What is in no reason phrase (RFC 9112, 4), and llhttp lets pass in one */
const unspeakable = /[^\t\x20-\x7e\x80-\xff]/

/** An answer as it goes to the client. */
export interface AnswerHead {
  readonly status: number
  readonly message: string
  readonly headers: readonly Header[]
  /** Undoes the coding that the host used although it was asked not to; or null */
  readonly decoder: Transform | null
  /** Whether the host keeps the connection */
  readonly isLast: boolean
}

/**
 * Returns what may be passed on of an answer's head, secrets masked. Throws a Refusal of 502 for what can't be read or said
 * again: a coding that we don't know, or several, or a first line with control characters in it.
 */
export const judgeAnswer = (
  answer: IncomingMessage,
  redactor: Redactor,
  hasBody: boolean,
  mostHeaders: number,
): AnswerHead => {
  const headers = pairs(answer.rawHeaders)
  if (headers.length > mostHeaders)
    throw new Refusal(502, 'answer-headers', 'the host’s answer has too many headers')
  const all = (name: string): readonly string[] =>
    headers.filter(([it]) => it.toLowerCase() === name).map(([, value]) => value)
  if (unspeakable.test(answer.statusMessage ?? ''))
    throw new Refusal(
      502,
      'answer-status',
      'the host’s answer has a letter in its first line that it may not have',
    )
  if (all('transfer-encoding').some((value) => value.trim().toLowerCase() !== 'chunked'))
    throw new Refusal(502, 'answer-framing', 'the host’s answer is framed in a way that is not spoken here')
  const decoder = hasBody ? decoderFor(all('content-encoding')) : null
  const isClean = holdsNothing([answer.statusMessage ?? '', ...answer.rawHeaders], redactor)
  const shown = (text: string): string => (isClean ? text : masked(text, redactor))
  const dropped = (name: string): boolean =>
    hopByHop.has(name) || (decoder !== null && (name === 'content-encoding' || name === 'content-length'))
  return {
    status: answer.statusCode ?? 502,
    message: shown(answer.statusMessage ?? ''),
    headers: headers
      .filter(([name]) => !dropped(name.toLowerCase()))
      .map(([name, value]) => [shown(name), shown(value)]),
    decoder,
    isLast: answer.httpVersion !== '1.1' || all('connection').some((value) => /\bclose\b/i.test(value)),
  }
}

/** The trailers of an answer, secrets masked, without those that would frame or route. */
export const judgeTrailers = (answer: IncomingMessage, redactor: Redactor): readonly Header[] =>
  pairs(answer.rawTrailers)
    .filter(
      ([name]) => !hopByHop.has(name.toLowerCase()) && !/^(content-length|host|set-cookie)$/i.test(name),
    )
    .map(([name, value]) => [masked(name, redactor), masked(value, redactor)])

/** Looks at all at once: what stands in one of them stands in them together. */
const holdsNothing = (texts: readonly string[], redactor: Redactor): boolean => {
  const mask = redactor.mask()
  mask.push(Buffer.from(texts.join('\n'), 'latin1'))
  mask.flush()
  return mask.found.size === 0
}

/** Returns a letter-for-byte text with asterisks for every secret. */
export const masked = (text: string, redactor: Redactor): string => {
  const mask = redactor.mask()
  const out = [mask.push(Buffer.from(text, 'latin1')), mask.flush()]
  return mask.found.size === 0 ? text : Buffer.concat(out).toString('latin1')
}

/** A stream's step that redacts. */
export const redacting = (stream: RedactingStream): Transform =>
  new Transform({
    transform: (chunk: Buffer, _, done) => done(null, stream.push(chunk)),
    flush: (done) => done(null, stream.flush()),
  })

const decoderFor = (codings: readonly string[]): Transform | null => {
  const words = codings
    .flatMap((value) => value.split(','))
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '' && word !== 'identity')
  const [coding, ...others] = words
  if (coding === undefined) return null
  const create = others.length === 0 ? decoders[coding] : undefined
  if (create === undefined)
    throw new Refusal(502, 'answer-coding', 'the host’s answer is compressed in a way that is not read here')
  return create()
}
