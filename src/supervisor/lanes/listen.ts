// `subscriptions/listen`, of the 2026-07-28 era: which resources and tasks it names, each of which policy is asked about.
import { SallyportError } from '../../errors.ts'
import { type Member, members } from '../../lib/json-scan.ts'
import { spellings } from '../../lib/key-folding.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { confusableWithin, type Request } from '../message/envelope.ts'
import { printable } from '../message/unavailable.ts'
import { utf8 } from '../message/utf8.ts'
import type { Ask } from './wire.ts'

/** Most resources, and most tasks, that one request may name */
export const mostListened = 256

/** What it may name -> the method that policy knows it by, and the argument under which rules find it */
const named = {
  resourceSubscriptions: { subject: 'resources/subscribe', argument: 'uri' },
  taskIds: { subject: 'tasks/get', argument: 'taskId' },
} as const

/** What else its params may have */
const beside: ReadonlySet<string> = new Set(['notifications', '_meta'])

const keys = spellings([
  'toolsListChanged',
  'promptsListChanged',
  'resourcesListChanged',
  ...Object.keys(named),
])

/** Why policy cannot be asked about a subscription, or null. */
export function whyNotListen(request: Request): SallyportError | null {
  try {
    listenAsks(request, '', '')
    return null
  } catch (thrown) {
    return SallyportError.from(thrown)
  }
}

/**
 * What policy is asked: about each resource and each task once. The first carries the whole request, the others what they
 * are about, so that a long list is not digested and recorded once for each thing in it.
 *
 * @throws ERR_INVALID_REQUEST for what is no object, more than `mostListened` of a kind, what is no list of texts, and what may name
 *   things that nobody would be asked about; ERR_MESSAGE_AMBIGUOUS for a key that readers take differently
 */
export function listenAsks({ text, params }: Request, bytes: string, evidence: string): readonly Ask[] {
  for (const { key } of params?.inner ?? []) if (!beside.has(key)) throw unknown(`params.${key}`)
  const wanted = params?.inner.find(({ key }) => key === 'notifications')
  if (wanted === undefined) return []
  if (text.charCodeAt(wanted.start) !== 123) throw invalid('', 'got something else', 'expected an object')
  const found = members(text, wanted.start, wanted.end)
  const key = confusableWithin(found, keys)
  if (key !== null) {
    const what = `params.notifications of subscriptions/listen has the key ${JSON.stringify(key)}`
    throw new SallyportError('ERR_MESSAGE_AMBIGUOUS', `${what}, which readers take differently`)
  }
  for (const one of found) {
    const namesNothing = /^(?:true|false|null)$/.test(text.slice(one.start, one.end))
    if (!namesNothing && !Object.hasOwn(named, one.key)) throw unknown(`params.notifications.${one.key}`)
  }
  const asks = Object.entries(named).flatMap(([name, { subject, argument }]) =>
    listOf(text, found, name).map((value): Ask => {
      const said = { [argument]: value }
      const json = JSON.stringify(said)
      return { kind: 'method', subject, arguments: said, bytes: json, evidence: json }
    }),
  )
  return asks.map((ask, n) => (n === 0 ? { ...ask, bytes, evidence } : ask))
}

function listOf(text: string, found: readonly Member[], name: string): readonly string[] {
  const member = found.find(({ key }) => key === name)
  if (member === undefined) return []
  const list: unknown = parseJson(utf8(text, member.start, member.end))
  if (!Array.isArray(list) || !list.every((one): one is string => typeof one === 'string'))
    throw invalid(`.${name}`, 'got something else', 'expected a list of texts')
  const different = [...new Set(list)]
  if (different.length > mostListened)
    throw invalid(
      `.${name}`,
      `got ${different.length}`,
      `expected at most ${mostListened}; send several requests`,
    )
  return different
}

const unknown = (where: string): SallyportError => {
  const said = `${printable(where.slice(0, 80))} of subscriptions/listen: got what policy knows nothing of`
  return new SallyportError(
    'ERR_INVALID_REQUEST',
    `${said}, expected ${[...keys.exact].join(', ')} in notifications, and _meta beside it`,
  )
}

const invalid = (name: '' | `.${string}`, got: string, expected: string): SallyportError =>
  new SallyportError(
    'ERR_INVALID_REQUEST',
    `params.notifications${name} of subscriptions/listen: ${got}, ${expected}`,
  )
