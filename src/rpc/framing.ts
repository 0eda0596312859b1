// Lines of a control connection into requests: bounded, strict, and exact about ids.
import { isUtf8 } from 'node:buffer'
import { SallyportError } from '../errors.ts'

import { JsonScanError, members, skipSpace } from '../lib/json-scan.ts'
import type { Member } from '../lib/json-scan.ts'
import { confusable, foldKey, spellings } from '../lib/key-folding.ts'
import { parseJson } from '../lib/parse-json.ts'
import { RawJson, stringifyRaw } from '../lib/raw-json.ts'

/** The id of an error that answers no request in particular. */
export const noId = new RawJson('null')

/** A call, as the peer wrote it. */
export interface Request {
  readonly kind: 'request'
  /** The id's own text, so that it is echoed exactly: `1.0` stays `1.0` */
  readonly id: RawJson
  readonly method: string
  readonly params: unknown
  /** Text of one member of `params`, or null when absent */
  text(member: string): RawJson | null
}

/** What a line on a daemon's socket can be. */
export type Incoming =
  | Request
  | { readonly kind: 'blank' }
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'fault'; readonly id: RawJson; readonly error: SallyportError }

/** Reads one line as a JSON-RPC 2.0 request; whatever is wrong with it becomes a fault, never an exception. */
export function parseRequest(line: Buffer): Incoming {
  let id = noId
  try {
    const text = line.toString('latin1') // offsets are then byte offsets
    const first = text[skipSpace(text, 0)]
    if (first === undefined) return { kind: 'blank' }
    if (!isUtf8(line)) throw notJson('it is not UTF-8')
    if (first !== '{') {
      // A batch is refused whatever is in it: reading millions of values for that would hold up everybody.
      if (first !== '[') parse(line)
      throw notAnObject(first)
    }
    const { members, fault } = scanned(text)
    id = idOf(line, members)
    const confused = confusable(
      members.map(({ key }) => key),
      envelope,
    )
    if (fault !== null) throw fault
    if (confused !== null) throw ambiguous(`the key ${JSON.stringify(confused)} can be taken for another`)
    return requestOf(line, id, parse(line), members)
  } catch (error) {
    return { kind: 'fault', id, error: SallyportError.from(error) }
  }
}

const envelope = spellings(['jsonrpc', 'id', 'method', 'params'])

function requestOf(line: Buffer, id: RawJson, message: unknown, members: readonly Member[]): Incoming {
  const { jsonrpc, method, params = {} } = fields(message)
  const hasId = members.some(({ key }) => key === 'id')
  if (hasId && id === noId) throw invalid('its id is neither a string nor a number')
  if (jsonrpc !== '2.0') throw invalid('it does not say "jsonrpc":"2.0"')
  if (typeof method !== 'string') throw invalid('it names no method')
  if (!hasId) return { kind: 'notification', method }
  const parts = paramsOf(members)
  return { kind: 'request', id, method, params, text: (member) => textOf(line, parts, member) }
}

// A level that policy reads: keys must be told apart by every reader.
function paramsOf(members: readonly Member[]): readonly Member[] {
  const parts = members.find(({ key }) => key === 'params')?.inner ?? []
  const folded = new Set<string>()
  for (const { key } of parts) {
    const fold = foldKey(key)
    if (key.includes('\0') || folded.has(fold))
      throw ambiguous(`the key ${JSON.stringify(key)} of params can be taken for another`)
    folded.add(fold)
  }
  return parts
}

/** The id of a request of which only the beginning is known; null where none, or no single one, stands in that. */
export function idIn(head: Buffer): RawJson | null {
  const found: Member[] = []
  try {
    members(head.toString('latin1'), 0, head.length, {}, found)
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error
  }
  const id = idOf(head, found)
  return id === noId ? null : id
}

const inside = new Set(['params'])

function scanned(text: string): { members: readonly Member[]; fault: SallyportError | null } {
  const found: Member[] = []
  try {
    return {
      members: members(text, 0, text.length, { unique: true, bounded: true, inside }, found),
      fault: null,
    }
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error
    const faults = { duplicate: ambiguous, parts: tooMuch, depth: notJson, syntax: notJson }
    // Where the id may be one of two, or of what is no message, nobody is answered by it.
    const isNobodys = error.kind === 'syntax' || text.startsWith('"id"', error.at)
    return { members: isNobodys ? [] : found, fault: faults[error.kind](error.message) }
  }
}

// The id's own text; noId where there is none, more than one, or one of a type that can't be answered.
function idOf(line: Buffer, members: readonly Member[]): RawJson {
  const ids = members.filter(({ key }) => key === 'id')
  const id = ids.length === 1 ? textOf(line, members, 'id') : null
  return id !== null && /^["\d-]/.test(id.raw) ? id : noId
}

function textOf(line: Buffer, members: readonly Member[], key: string): RawJson | null {
  const member = members.find((candidate) => candidate.key === key)
  return member === undefined ? null : new RawJson(line.toString('utf8', member.start, member.end))
}

/** What a line on a caller's end can be. */
export type Reply =
  | {
      readonly kind: 'result'
      readonly id: number | null
      readonly result: unknown
      /** The result as the daemon wrote it */
      text(): RawJson
    }
  | { readonly kind: 'error'; readonly id: number | null; readonly error: SallyportError }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }

/** Reads one line of a daemon. Throws where it is none of the three. */
export function parseReply(line: Buffer): Reply {
  if (!isUtf8(line)) throw notJson('it is not UTF-8')
  const message = fields(parse(line))
  if (typeof message['method'] === 'string')
    return { kind: 'notification', method: message['method'], params: message['params'] }
  const id = typeof message['id'] === 'number' ? message['id'] : null
  if ('error' in message) return { kind: 'error', id, error: errorOf(message['error']) }
  return { kind: 'result', id, result: message['result'], text: () => resultText(line) }
}

function errorOf(error: unknown): SallyportError {
  if (typeof fields(error)['message'] === 'string') return SallyportError.fromRpc(error)
  return new SallyportError(
    'ERR_DAEMON_PROTOCOL',
    `the daemon answered with an error that is none: got ${JSON.stringify(error).slice(0, 80)}, expected an object with a message; use the sallyport of the daemon's version`,
  )
}

function resultText(line: Buffer): RawJson {
  const text = line.toString('latin1') // offsets are then byte offsets
  const all = members(text, 0, text.length).toReversed() // of two the last counts, as in what was parsed
  return textOf(line, all, 'result') ?? noId
}

/** The line of a call; a caller's own ids are numbers. */
export function requestLine(id: number, method: string, params: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${stringifyRaw(params)}}\n`
}

/** The line of an answer. */
export function resultLine(id: RawJson, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${id.raw},"result":${stringifyRaw(result)}}\n`
}

/** The line of a refusal or failure. */
export function errorLine(id: RawJson, error: SallyportError): string {
  return `{"jsonrpc":"2.0","id":${id.raw},"error":${JSON.stringify(error.toRpc())}}\n`
}

/** The line of a notification. */
export function notificationLine(method: string, params: unknown): string {
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${stringifyRaw(params)}}\n`
}

function parse(line: Buffer): unknown {
  try {
    return parseJson(line.toString('utf8'))
  } catch (error) {
    // V8 quotes the text around the fault, and a line may hold what a log should not.
    throw notJson(whyNotJson(line, error instanceof Error ? error.message : ''))
  }
}

function whyNotJson(line: Buffer, said: string): string {
  if (line.subarray(0, 3).equals(byteOrderMark))
    return 'it begins with a byte order mark; send it without one'
  const position = /position \d+/.exec(said)
  if (said.startsWith('Unexpected end') || said.startsWith('Unterminated')) return 'it ends too early'
  return `unexpected character${position === null ? '' : ` at ${position[0]}`}`
}

const byteOrderMark = Buffer.from('\ufeff')

function fields(message: unknown): Record<string, unknown> {
  return typeof message === 'object' && message !== null ? { ...message } : {}
}

function notJson(why: string): SallyportError {
  return new SallyportError('ERR_PARSE', `the line is not JSON: ${why}`)
}

function notAnObject(first: string): SallyportError {
  if (first === '[')
    return new SallyportError(
      'ERR_BATCH_REFUSED',
      'the control protocol takes no batches; send one message a line',
    )
  return invalid('it is not an object')
}

function invalid(why: string): SallyportError {
  return new SallyportError('ERR_INVALID_REQUEST', `the message is not a JSON-RPC 2.0 request: ${why}`)
}

function tooMuch(why: string): SallyportError {
  return new SallyportError('ERR_MESSAGE_TOO_LARGE', `the message cannot be taken: ${why}`)
}

function ambiguous(why: string): SallyportError {
  return new SallyportError('ERR_MESSAGE_AMBIGUOUS', `${why}; write each key once, as the protocol spells it`)
}
