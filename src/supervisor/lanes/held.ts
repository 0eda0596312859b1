// Takes a governed request out of the stream: what policy is to be asked about it, and what is sent once it may pass.
import { decodeString, type Member, members, type Span } from '../../lib/json-scan.ts'
import { isLong } from '../../lib/long-text.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { rememberedOnce } from '../../lib/remembered.ts'
import type { Route } from '../../schema/gate.ts'
import type { HostRequest } from './conversation.ts'
import { readUnambiguous, type Request } from '../message/envelope.ts'
import { listenAsks } from './listen.ts'
import { utf8 } from '../message/utf8.ts'
import type { Ask, Held } from './wire.ts'

const nameOf = rememberedOnce(decodeString)

/** What policy is asked about a request; a subscription is asked about thing by thing. Throws what `listenAsks` throws. */
export function asksOf(request: Request, route: Route): readonly Ask[] {
  if (route !== 'call' && route !== 'govern' && route !== 'listen') return []
  const { text, params, method } = request
  const bytes = params === null ? '{}' : utf8(text, params.start, params.end)
  const found = params?.inner ?? []
  const evidence = params === null || !found.some(isPrivate) ? bytes : evidenceOf(text, params)
  if (route === 'govern') {
    const value = (): unknown => withoutPrivate(valueOf(text, params) ?? {})
    return [askOf({ kind: 'method', subject: method, bytes, evidence }, value)]
  }
  if (route === 'call') {
    const name = memberOf(found, 'name')
    const subject = name === null ? '' : nameOf(text.slice(name.start, name.end))
    const given = memberOf(found, 'arguments')
    const value = (): unknown => (given === null ? {} : valueOf(text, given))
    return [askOf({ kind: 'tool', subject, bytes, evidence }, value)]
  }
  return listenAsks(request, bytes, evidence)
}

/** Arguments that are long are read when they are first asked for, which is in another turn than this. */
function askOf({ kind, subject, bytes, evidence }: Omit<Ask, 'arguments'>, read: () => unknown): Ask {
  if (!isLong(bytes)) return { kind, subject, arguments: read(), bytes, evidence }
  let value: { readonly read: unknown } | null = null
  return {
    kind,
    subject,
    get arguments() {
      value ??= { read: read() }
      return value.read
    },
    bytes,
    evidence,
  }
}

/**
 * The text of `params`, or of a result, as it is recorded: what a person answered is in no record, nor is the server's
 * state of a conversation, which may hold answers of before.
 */
export function evidenceOf(text: string, { start, end, inner }: Member): string {
  const hidden = inner.filter(isPrivate)
  if (hidden.length === 0) return utf8(text, start, end)
  const from = [start, ...hidden.map((one) => one.end)]
  const to = [...hidden.map((one) => one.start), end]
  return from.map((at, n) => utf8(text, at, to[n] ?? at)).join('"[not recorded]"')
}

/** Compared, and not looked up in a Set: it is asked of every member of every call and answer, whose table would be cold. */
const isPrivateKey = (key: string): boolean => key === 'inputResponses' || key === 'requestState'
const isPrivate = ({ key }: Member): boolean => isPrivateKey(key)

const withoutPrivate = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => !isPrivateKey(key)))
    : value

export function heldOf(opened: HostRequest, request: Request, asks: readonly Ask[]): Held {
  const { text, start, end } = request
  const meta = memberOf(request.params?.inner ?? [], '_meta')
  const found =
    meta === null || text.charCodeAt(meta.start) !== 123 ? [] : members(text, meta.start, meta.end)
  const lineage = memberOf(found, lineageKey)
  const token = memberOf(found, 'progressToken')
  return {
    request: opened,
    line: `${text.slice(start, end)}\n`,
    asks,
    asksTask: (request.params?.inner ?? []).some(({ key }) => key === 'task'),
    lineage:
      lineage !== null && text.charCodeAt(lineage.start) === 34
        ? String(valueOf(text, lineage)) // a copy: what is cut out of the line would keep all of it in flight
        : null,
    progressToken: token === null ? null : text.slice(token.start, token.end),
  }
}

/** What the `_meta` at that place says as a lineage that is no text of I-JSON, or one that no record has room for; else null. */
export function noLineage(text: string, meta: Member | undefined): string | null {
  if (meta === undefined || text.charCodeAt(meta.start) !== 123) return null
  const raw = text.slice(meta.start, meta.end)
  if (!raw.includes(lineageKey) && !raw.includes('\\')) return null
  const said = memberOf(members(text, meta.start, meta.end), lineageKey)
  if (said === null) return null
  const { start, end } = said
  if (text.charCodeAt(start) !== 34) return kindAt(text, said)
  if (end - start > longestText) return `${end - start} bytes with its quotes`
  return String(valueOf(text, said)).isWellFormed() ? null : 'half of a surrogate pair'
}

/** Which kind of JSON value stands there, in words. */
export const kindAt = (text: string, { start }: Span): string => kinds[text.charAt(start)] ?? 'a number'

const kinds: Readonly<Record<string, string>> = {
  '{': 'an object',
  '[': 'an array',
  '"': 'a string',
  t: 'a boolean',
  f: 'a boolean',
  n: 'null',
}

const lineageKey = 'sallyport/lineage'

/** Longest name and lineage in a session, bytes with their quotes; a lineage of the control protocol is as long */
export const longestText = 4096

/** A request that goes out again, as a call of its own; null where what the server would have in it has no one reading. */
export function heldAgain(request: HostRequest, line: string): Held | null {
  const envelope = readUnambiguous(line, 0, line.length - 1)
  if (envelope.kind !== 'request') return null
  return heldOf(request, envelope, asksOf(envelope, request.route))
}

const memberOf = (found: readonly Member[], key: string): Member | null =>
  found.find((member) => member.key === key) ?? null

function valueOf(text: string, span: Span | null): unknown {
  if (span === null) return undefined
  return parseJson(utf8(text, span.start, span.end))
}

/** A subscription lasts; a list that only waited for the surface to be known is no governed call. */
export const isTimed = ({ asks, request }: Held): boolean => asks.length > 0 && request.route !== 'listen'
