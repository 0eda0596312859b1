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
import { sendsTwoWays } from './two-ways.ts'

const urlElicitationRequired = -32042

type Asker = Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>

/**
 * Why a host does not hear of the address to which an answer sends a person, by an error or by what a task came to: the server
 * may ask a person for nothing, the host did not declare that it opens addresses, or hosts could read other ones. Null where it does,
 * and for all other answers.
 */
export const whyNotSent = (
  server: Asker,
  { text, error, result }: Pick<Response, 'text' | 'error' | 'result'>,
  declared: () => Declared,
): string | null => {
  const sending = error === null ? [] : sendingOf(text, error)
  return whyNot(server, text, [...sending, ...(result === null ? [] : failedIn(text, result))], declared)
}

/** The same of what a notification says of a task. */
export const whyNotTold = (
  server: Asker,
  text: string,
  params: Member,
  declared: () => Declared,
): string | null => whyNot(server, text, failedIn(text, params), declared)

/** Members of an error that sends a person to addresses; null of what can't be read, which may */
type Sending = readonly Member[] | null

function whyNot(
  server: Asker,
  text: string,
  sending: readonly Sending[],
  declared: () => Declared,
): string | null {
  if (sending.length === 0) return null
  const why = whyNotHost(server, declared, 'elicitation', { mode: 'url' })
  if (why !== null) return why
  for (const error of sending) {
    const unclear =
      error === null ? 'what it says of tasks can’t be read in one way' : sendsTwoWays(text, error)
    if (unclear !== null) return unclear
  }
  return null
}

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
 * The errors of a task, or of a list of them, that are such; what is too long to be looked at may be one. A list in a list is none: with
 * each level the rest of the text would be read once more.
 */
const failedIn = (text: string, { start, end, inner }: Member): readonly Sending[] => {
  if (inner.every(({ key }) => harmless.has(key)) || !digits.test(text.slice(start, end))) return []
  const failed = (member: Member): readonly Sending[] =>
    foldKey(member.key) === 'error' ? sendingAt(text, member) : []
  const listedFailed = (member: Member): readonly Sending[] =>
    foldKey(member.key) === 'tasks' ? listed(text, member).flatMap((task) => task.inner.flatMap(failed)) : []
  try {
    return inner.flatMap((member) => [...failed(member), ...listedFailed(member)])
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return [null]
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

/** The members of an error by which a host, however it reads keys, shows a person addresses to open; none of any other. */
const sendingOf = (text: string, { inner }: Pick<Member, 'inner'>): readonly Sending[] =>
  inner.some(
    ({ key, start, end }) =>
      foldKey(key) === 'code' && codeIn(text.slice(start, end)) === urlElicitationRequired,
  )
    ? [inner]
    : []

/** The same of a member that was not listed. */
const sendingAt = (text: string, { start, end }: Span): readonly Sending[] =>
  text.charCodeAt(start) === 123
    ? sendingOf(text, { inner: members(text, start, end, { bounded: 'listed' }) })
    : []

/** As lenient readers take it: a number out of a text too, and nothing of what stands behind its point. */
const codeIn = (literal: string): number =>
  Math.trunc(Number(literal.startsWith('"') ? decodeString(literal).replaceAll('_', '') : literal))
