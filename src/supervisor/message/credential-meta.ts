// `_meta["sallyport/credentials"]` of a message: put into the one request that a lease is for, and taken out of all others.
import { type Member, members, type Span } from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import { type Notification, readEnvelope, readUnambiguous, type Request, type Response } from './envelope.ts'

const key = 'sallyport/credentials'
/** What a text has in which a key may fold to it: letters as they are with what folds to nothing between, or others that are not read here */
const mayFold = /[\\\x7f-\xff]|s *a *l *l *y *p *o *r *t *\/ *c/i
/** Whatever somebody takes for the key: servers read members in any case, too */
const isOurs = (member: Member): boolean => foldKey(member.key) === key

/** A request's line (latin1 reading, with its line feed) with the secrets of its call. */
export function lineWithCredentials(line: string, values: Readonly<Record<string, string>>): string {
  const envelope = readEnvelope(line, 0, line.length - 1)
  if (envelope.kind !== 'request') return line
  if (envelope.params !== null) return replaced(line, envelope.params, values)
  const end = line.lastIndexOf('}')
  return `${line.slice(0, end)},"params":{"_meta":${metaOf([], line, values)}}${line.slice(end)}`
}

/** The same of params alone, in plain reading: a JSON object as it will be sent. */
export function paramsWithCredentials(params: string, values: Readonly<Record<string, string>>): string {
  const text = Buffer.from(params, 'utf8').toString('latin1')
  const whole = replaced(text, { start: 0, end: text.length }, values)
  return Buffer.from(whole, 'latin1').toString('utf8')
}

/** The message without what only Sallyport may say in it; null where it says nothing of the kind. */
export function withoutCredentials<Said extends Request | Notification>(said: Said): Said | null {
  const { text, start, end, params } = said
  if (params === null || !says(text, params)) return null
  const line = replaced(text.slice(0, end), params, null).slice(start)
  const again = readUnambiguous(line, 0, line.length)
  return again.kind === said.kind ? (again as Said) : null
}

/** The line of an answer without them; null where there are none. */
export function answerWithoutCredentials({ text, start, end, result }: Response): string | null {
  if (result === null || !says(text, result)) return null
  return replaced(text.slice(0, end), result, null).slice(start)
}

/** True where the object's `_meta` has the key, however it is spelt. */
function says(text: string, { inner }: Member): boolean {
  const meta = inner.find((member) => member.key === '_meta')
  if (meta === undefined || text.charCodeAt(meta.start) !== 123) return false
  if (!mayFold.test(text.slice(meta.start, meta.end))) return false
  return members(text, meta.start, meta.end).some(isOurs)
}

/** The text with the member set in `_meta` of the object at `span`, or with null taken out of it. */
function replaced(
  text: string,
  { start, end }: Span,
  values: Readonly<Record<string, string>> | null,
): string {
  const meta = members(text, start, end).find((member) => member.key === '_meta')
  const isObject = meta !== undefined && text.charCodeAt(meta.start) === 123
  const object = metaOf(isObject ? members(text, meta.start, meta.end) : [], text, values)
  if (meta !== undefined) return `${text.slice(0, meta.start)}${object}${text.slice(meta.end)}`
  const open = text.indexOf('{', start) + 1
  const isEmpty = /^\s*\}/.test(text.slice(open, end))
  return `${text.slice(0, open)}"_meta":${object}${isEmpty ? '' : ','}${text.slice(open)}`
}

function metaOf(
  found: readonly Member[],
  text: string,
  values: Readonly<Record<string, string>> | null,
): string {
  const kept = found
    .filter((member) => !isOurs(member))
    .map((member) => `${latin1(JSON.stringify(member.key))}:${text.slice(member.start, member.end)}`)
  const own = values === null ? [] : [`"${key}":${latin1(JSON.stringify(values))}`]
  return `{${[...kept, ...own].join(',')}}`
}

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
