// The 2025-11-25 way in which a server sends a person to an address without a request: an error with a code of its own.
import {
  decodeString,
  elements,
  JsonScanError,
  type Member,
  members,
  type Span,
} from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Response } from '../message/envelope.ts'
import type { Declared } from './declared.ts'
import { whyNotHost } from './server-may.ts'

const urlElicitationRequired = -32042

type Asker = Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>

/**
 * Why a host does not hear of the address to which an answer sends a person, by an error or by what a task came to: the server
 * may ask a person for nothing, or the host did not declare that it opens addresses. Null where it does, and for all other answers.
 */
export const whyNotSent = (
  server: Asker,
  { text, error, result }: Pick<Response, 'text' | 'error' | 'result'>,
  declared: () => Declared,
): string | null =>
  (error !== null && sendsToAddress(text, error)) || (result !== null && failedSo(text, result))
    ? whyNotHost(server, declared, 'elicitation', { mode: 'url' })
    : null

/** The same of what a notification says of a task. */
export const whyNotTold = (
  server: Asker,
  text: string,
  params: Member,
  declared: () => Declared,
): string | null =>
  failedSo(text, params) ? whyNotHost(server, declared, 'elicitation', { mode: 'url' }) : null

/** Members of nearly every result; none of them is an error, however it is read */
const harmless: ReadonlySet<string> = new Set([
  'content',
  'structuredContent',
  'isError',
  'resultType',
  '_meta',
])

/** Digits of the code in their order, however they are written: a text without them has no such error, and is looked at no closer */
const digits = /3[._]*2[._]*0[._]*4[._]*(?:2|1[._]*9)|\\u00/

/**
 * True for a task, or a list of them, of which one ended with such an error, and for a list that is too long to be looked at. A list
 * in a list is none: with each level the rest of the text would be read once more.
 */
const failedSo = (text: string, { start, end, inner }: Member): boolean => {
  if (inner.every(({ key }) => harmless.has(key)) || !digits.test(text.slice(start, end))) return false
  const isFailed = (member: Member): boolean => foldKey(member.key) === 'error' && holdsAddress(text, member)
  const holdsFailed = (member: Member): boolean =>
    foldKey(member.key) === 'tasks' && listed(text, member).some((task) => task.inner.some(isFailed))
  try {
    return inner.some((member) => isFailed(member) || holdsFailed(member))
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return true
  }
}

const listed = (text: string, { start, end }: Member): readonly Member[] =>
  text.charCodeAt(start) !== 91
    ? []
    : elements(text, start, end, { bounded: true }).map((task) => ({
        ...task,
        key: '',
        inner: text.charCodeAt(task.start) === 123 ? members(text, task.start, task.end) : [],
      }))

/** True for an error by which a host, however it reads keys, shows a person addresses to open. */
const sendsToAddress = (text: string, { inner }: Pick<Member, 'inner'>): boolean =>
  inner.some(
    ({ key, start, end }) =>
      foldKey(key) === 'code' && codeIn(text.slice(start, end)) === urlElicitationRequired,
  )

/** The same of a member that was not listed. */
const holdsAddress = (text: string, { start, end }: Span): boolean =>
  text.charCodeAt(start) === 123 &&
  sendsToAddress(text, { inner: members(text, start, end, { bounded: 'listed' }) })

/** As lenient readers take it: a number out of a text too, and nothing of what stands behind its point. */
const codeIn = (literal: string): number =>
  Math.trunc(Number(literal.startsWith('"') ? decodeString(literal).replaceAll('_', '') : literal))
