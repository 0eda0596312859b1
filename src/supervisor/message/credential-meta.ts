// `_meta["sallyport/credentials"]` of a message: put into the one request that a lease is for, and taken out of all others; out of
// an answer goes whatever is said there in Sallyport's name.
import { type Member, members, type Span } from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import { type Notification, readEnvelope, readUnambiguous, type Request, type Response } from './envelope.ts'

const prefix = 'sallyport/'
const key = `${prefix}credentials`
/** What a text has in which a key may fold to it: letters as they are with what folds to nothing between, or others that are not read here */
const mayFold = /[\\\x7f-\xff]|s *a *l *l *y *p *o *r *t *\//i
/** Whatever somebody takes for the key: servers read members in any case, too */
const isOurs = (member: Member): boolean => foldKey(member.key) === key
const isInOurName = (member: Member): boolean => foldKey(member.key).startsWith(prefix)
const isMeta = ({ key: name }: Member): boolean =>
  name === '_meta' || (name.charCodeAt(0) === 95 && foldKey(name) === '_meta')

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

/**
 * The line of an answer without what only Sallyport may say, such as the error of a call that was never made; null where there is
 * nothing of it.
 */
export function answerWithoutOurs({ text, start, end, result }: Response): string | null {
  if (result === null) return null
  let [line, last] = ['', end]
  for (const meta of result.inner.filter(isMeta).toReversed()) {
    const found = membersSaying(text, meta)
    if (!found.some(isInOurName)) continue
    line = `${objectOf(
      found.filter((member) => !isInOurName(member)),
      text,
    )}${text.slice(meta.end, last)}${line}`
    last = meta.start
  }
  return last === end ? null : text.slice(start, last) + line
}

/** True where the object's `_meta` has the key, however it is spelt. */
function says(text: string, { inner }: Member): boolean {
  const meta = inner.find((member) => member.key === '_meta')
  return meta !== undefined && membersSaying(text, meta).some(isOurs)
}

/** The members of a `_meta` that may have a key of ours; none of every other. */
function membersSaying(text: string, { start, end }: Span): readonly Member[] {
  if (text.charCodeAt(start) !== 123 || !mayFold.test(text.slice(start, end))) return []
  return members(text, start, end)
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
  const own = values === null ? [] : [`"${key}":${latin1(JSON.stringify(values))}`]
  const kept = found.filter((member) => !isOurs(member))
  return objectOf(kept, text, own)
}

function objectOf(kept: readonly Member[], text: string, own: readonly string[] = []): string {
  const said = kept.map(
    (member) => `${latin1(JSON.stringify(member.key))}:${text.slice(member.start, member.end)}`,
  )
  return `{${[...said, ...own].join(',')}}`
}

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
