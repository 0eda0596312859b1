// What a host says that it can be asked for: once with its handshake, and in the later era with each request.
import { type Member, members } from '../../lib/json-scan.ts'
import type { Route } from '../../schema/gate.ts'

/** What of its capabilities lets a server ask it. */
export interface Declared {
  /** `elicitation`, in the words of a form; an empty object is that, too */
  readonly form: boolean
  /** `elicitation.url`: a person may be sent to an address */
  readonly url: boolean
  readonly sampling: boolean
}

export const nothingDeclared: Declared = { form: false, url: false, sampling: false }

const inMeta = 'io.modelcontextprotocol/clientCapabilities'

/** What the params of `initialize` declare; the text is in latin1 reading. */
export const declaredAtStart = (text: string, params: Member | null): Declared =>
  params === null ? nothingDeclared : declaredIn(text, of(params.inner, 'capabilities'))

/** What the params of a request of the later era declare. */
export function declaredBy(text: string, params: readonly Member[]): Declared {
  return declaredIn(text, of(inside(text, of(params, '_meta')), inMeta))
}

function declaredIn(text: string, capabilities: Member | null): Declared {
  const found = inside(text, capabilities)
  const elicitation = of(found, 'elicitation')
  const modes = inside(text, elicitation)
  const url = isObject(text, of(modes, 'url'))
  const form = isObject(text, elicitation) && (!url || isObject(text, of(modes, 'form')))
  return { form, url, sampling: isObject(text, of(found, 'sampling')) }
}

/** Why a host is not asked that a server may ask, or null; `params` are the question's. */
export function whyNotDeclared(host: Declared, route: Route, params: unknown): string | null {
  if (route === 'sampling') return host.sampling ? null : undeclared('sampling')
  if (route !== 'elicitation') return null
  const isUrl = Reflect.get(Object(params), 'mode') === 'url'
  if (isUrl) return host.url ? null : undeclared('elicitation.url')
  return host.form ? null : undeclared(host.url ? 'elicitation.form' : 'elicitation')
}

const undeclared = (capability: string): string => `the host did not declare capabilities.${capability}`

const of = (found: readonly Member[], key: string): Member | null =>
  found.find((member) => member.key === key) ?? null

const isObject = (text: string, span: Member | null): span is Member =>
  span !== null && text.charCodeAt(span.start) === 123

const inside = (text: string, span: Member | null): readonly Member[] =>
  isObject(text, span) ? members(text, span.start, span.end) : []
