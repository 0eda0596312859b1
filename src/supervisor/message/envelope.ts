// Reads the envelope of one JSON-RPC message, and refuses what two readers could take for different messages.
import { type ErrorCode, SallyportError } from '../../errors.ts'
import {
  decodeString,
  JsonScanError,
  type Member,
  members,
  skipSpace,
  type Span,
} from '../../lib/json-scan.ts'
import { rememberedOnce } from '../../lib/remembered.ts'
import { isConfusable, type Spellings, spellings } from '../../lib/key-folding.ts'
import { Likeness, type Said } from './likeness.ts'
import { longestId, type MessageId, messageId } from './message-id.ts'
import { onlyId, unread } from './unread.ts'

interface Parts {
  readonly text: string
  readonly start: number
  readonly end: number
}

/** The bytes that a message came in, or null where they are not at hand */
type Bytes = Uint8Array | null

/** One message; offsets are into the text that it was read from. */
export type Envelope =
  | (Parts & {
      readonly kind: 'request'
      readonly id: MessageId
      readonly method: string
      readonly params: Member | null
    })
  | (Parts & { readonly kind: 'notification'; readonly method: string; readonly params: Member | null })
  | (Parts & {
      readonly kind: 'response'
      /** Null where the peer could not tell which request failed */
      readonly id: MessageId | null
      readonly idSpan: Span
      readonly result: Member | null
      readonly error: Member | null
    })
  | {
      readonly kind: 'invalid'
      /** The id to answer with, where one could be read; an answer has none of its own */
      readonly id: MessageId | null
      readonly error: SallyportError
      /** The request that this would answer, if it could be read: it has that id, and no method */
      readonly answers: MessageId | null
    }

export type Request = Extract<Envelope, { kind: 'request' }>
export type Notification = Extract<Envelope, { kind: 'notification' }>
export type Response = Extract<Envelope, { kind: 'response' }>

const envelopeNames = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const envelopeKeys = spellings([...envelopeNames])
/** Each member of these is looked at, and so there are not more of them than can be, whoever says it */
const inside = new Set(['params', 'result', 'error'])

const methodOf = rememberedOnce(decodeString)

/**
 * Reads the message from `start` to `end`; of what its members hold it sees no more than that it is well-formed. Where there
 * are `bytes`, of which `text` is the latin1 reading, a message that is like one before is read by them, in less time.
 */
export function readEnvelope(text: string, start: number, end: number, bytes: Bytes = null): Envelope {
  return read(text, start, end, false, bytes)
}

/** The same, and refuses what policy could read otherwise than a server: the same key twice, at any depth, more than is read, and a request with more than JSON-RPC’s members. */
export function readUnambiguous(text: string, start: number, end: number, bytes: Bytes = null): Envelope {
  return read(text, start, end, true, bytes)
}

/** The same of the message that is all of a line, in either way; null for a batch, or where there is nothing. */
export function readLine(
  bytes: Uint8Array,
  text: string,
  start: number,
  end: number,
  isStrict: boolean,
): Envelope | null {
  const first = skipSpace(text, start)
  return first >= end || text.charCodeAt(first) === 91 ? null : read(text, start, end, isStrict, bytes)
}

/** By whether keys must be unique: what was read one way was not read the other. */
const [strictly, loosely] = [new Likeness(true), new Likeness(false)]

function read(text: string, start: number, end: number, isStrict: boolean, bytes: Bytes): Envelope {
  const likeness = isStrict ? strictly : loosely
  const alike = bytes === null ? null : likeness.read(bytes, text, start, end)
  if (alike !== null) return envelopeOf(text, start, end, alike)
  const found: Member[] = []
  try {
    members(text, start, end, { unique: isStrict, bounded: isStrict || 'listed', inside }, found)
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    const codes = { duplicate: 'ERR_MESSAGE_AMBIGUOUS', parts: 'ERR_MESSAGE_TOO_LARGE' } as const
    const code =
      thrown.kind === 'duplicate' || thrown.kind === 'parts'
        ? codes[thrown.kind]
        : syntaxCode(text, start, end)
    const message = `${thrown.message}, at byte ${thrown.at - start}`
    const { id, answers } = unread(text, start, end, thrown, found)
    return invalid(id, code, message, answers)
  }
  const envelope = classify(text, start, end, found, isStrict)
  const { kind } = envelope
  const method = kind === 'request' ? envelope.method : null
  const body = kind === 'request' ? envelope.params : kind === 'response' ? envelope.result : null
  // Only of what comes with its bytes are there more that can be read by what was learnt.
  if (body !== null && bytes !== null) likeness.learn(text, start, end, { method, body }, found)
  return envelope
}

const envelopeOf = (text: string, start: number, end: number, said: Said): Envelope => {
  const { method, id, idSpan, body } = said
  return method === null
    ? { kind: 'response', text, start, end, id, idSpan, result: body, error: null }
    : { kind: 'request', text, start, end, id, method, params: body }
}

function classify(
  text: string,
  start: number,
  end: number,
  found: readonly Member[],
  isStrict: boolean,
): Envelope {
  let version: Member | null = null
  let idSpan: Member | null = null
  let method: Member | null = null
  let params: Member | null = null
  let result: Member | null = null
  let error: Member | null = null
  let isTwice = false
  let unknown = 0
  for (const member of found) {
    switch (member.key) {
      case 'jsonrpc':
        isTwice ||= version !== null
        version = member
        break
      case 'id':
        isTwice ||= idSpan !== null
        idSpan = member
        break
      case 'method':
        isTwice ||= method !== null
        method = member
        break
      case 'params':
        isTwice ||= params !== null
        params = member
        break
      case 'result':
        isTwice ||= result !== null
        result = member
        break
      case 'error':
        isTwice ||= error !== null
        error = member
        break
      default:
        unknown++
    }
  }
  const id = idSpan === null ? null : messageId(text.slice(idSpan.start, idSpan.end))
  const isAnswer = method === null && (result !== null || error !== null)
  const own = isAnswer ? null : id
  const answers = (): MessageId | null => (method === null ? onlyId(text, found) : null)
  if (isTwice)
    return invalid(null, 'ERR_MESSAGE_AMBIGUOUS', 'a member of the envelope stands twice', answers())
  if (unknown > 0) {
    const key = confusableWithin(found, envelopeKeys)
    if (key !== null) {
      return invalid(
        own,
        'ERR_MESSAGE_AMBIGUOUS',
        `the envelope has the key ${JSON.stringify(key)}, which readers take differently`,
        answers(),
      )
    }
  }
  if (version === null || text.slice(version.start, version.end) !== '"2.0"') {
    return invalid(own, 'ERR_INVALID_REQUEST', 'jsonrpc must be "2.0"', answers())
  }
  if (method !== null) {
    if (result !== null || error !== null)
      return invalid(id, 'ERR_INVALID_REQUEST', 'a message with a method has no result and no error')
    if (text.charCodeAt(method.start) !== 34)
      return invalid(id, 'ERR_INVALID_REQUEST', 'the method must be a string')
    const name = methodOf(text.slice(method.start, method.end))
    if (idSpan === null) return { kind: 'notification', text, start, end, method: name, params }
    // A request is decided, approved and recorded by its params: what stands beside them would go with it, and nobody knew.
    if (unknown > 0 && isStrict) {
      const other = found.find(({ key }) => !envelopeNames.has(key))?.key ?? ''
      const what = `a request has jsonrpc, id, method and params; leave out ${JSON.stringify(other.slice(0, 100))}`
      return invalid(id, 'ERR_INVALID_REQUEST', what)
    }
    if (id === null) {
      return invalid(
        null,
        'ERR_INVALID_REQUEST',
        `the id of ${name} must be a string or a finite number, of at most ${longestId} bytes`,
      )
    }
    return { kind: 'request', text, start, end, id, method: name, params }
  }
  if (idSpan === null || (result === null) === (error === null)) {
    const what = 'a message has a method, or an id and one of result and error'
    return invalid(own, 'ERR_INVALID_REQUEST', what, answers())
  }
  if (id === null && text.slice(idSpan.start, idSpan.end) !== 'null') {
    return invalid(
      null,
      'ERR_INVALID_REQUEST',
      `the id of an answer must be a string or a finite number, of at most ${longestId} bytes, or null`,
    )
  }
  // JSON-RPC lets a result be anything; MCP's are objects, and readers of MCP wait for one for as long as they wait for nothing.
  const said = result ?? error
  if (said !== null && text.charCodeAt(said.start) !== 123)
    return invalid(null, 'ERR_INVALID_REQUEST', `the ${said.key} of an answer must be an object`, answers())
  return { kind: 'response', text, start, end, id, idSpan, result, error }
}

/** The first key of an object that readers take differently, or null. */
export function confusableIn(found: readonly Member[], known: Spellings): string | null {
  for (const { key } of found) if (isConfusable(key, known)) return key
  return null
}

/** The same where members may be missing: in `__proto__`, readers that copy objects find them. */
export function confusableWithin(found: readonly Member[], known: Spellings): string | null {
  return found.some(({ key }) => key === '__proto__') ? '__proto__' : confusableIn(found, known)
}

/** JSON that is no object is well-formed text and no message; the first character tells. */
function syntaxCode(text: string, start: number, end: number): ErrorCode {
  return /^[\s]*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)\s*$/.test(
    text.slice(start, Math.min(end, start + 256)),
  )
    ? 'ERR_INVALID_REQUEST'
    : 'ERR_PARSE'
}

const invalid = (
  id: MessageId | null,
  code: ErrorCode,
  message: string,
  answers: MessageId | null = null,
): Envelope => ({ kind: 'invalid', id, error: new SallyportError(code, message), answers })
