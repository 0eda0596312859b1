// What a host can't ask of a process that it shares: whatever sets the state of a connection, which is not its own.
import { SallyportError } from '../../errors.ts'
import type { Member, Span } from '../../lib/json-scan.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Request } from '../message/envelope.ts'
import { capabilitiesKey, modernVersion, versionKey } from '../message/modern-dress.ts'
import { metaOf, only } from './lines.ts'

/** Most requests that one session may have in flight there, so that none takes the whole process */
export const mostShared = 1024

/** Method of an older era -> what the later one has in its place */
const replaced: Readonly<Record<string, string>> = {
  initialize: `a host of ${modernVersion}, whose requests each say who speaks`,
  'logging/setLevel': `_meta["io.modelcontextprotocol/logLevel"] of each request`,
  'resources/subscribe': 'subscriptions/listen',
  'resources/unsubscribe': 'notifications/cancelled for the subscriptions/listen',
}

/**
 * Why the request can't be made of that server, or null. Its code is what hosts of the later era know: ERR_VERSION_UNSUPPORTED
 * where it does not say that version, ERR_INVALID_PARAMS where it says it and not all that belongs to it, ERR_METHOD_NOT_FOUND
 * where that version has no such method.
 */
export function whyNotShared({ name, instance }: ServerSettings, request: Request): SallyportError | null {
  if (instance !== 'shared') return null
  const { method } = request
  const instead = Object.hasOwn(replaced, method) ? replaced[method] : undefined
  const lacking = lackingIn(request)
  if (instead === undefined && lacking === null) return null
  const why = instead === undefined ? lacking?.why : `${method} sets up a connection`
  const what = `${why}, and the process of mcp server ${name} is shared by many (instance: shared)`
  const mend = `use ${instead ?? `a host of ${modernVersion}, whose requests each say who speaks`}, or have the operator set instance: session`
  const { code, requested } = lacking ?? { code: 'ERR_METHOD_NOT_FOUND', requested: null }
  return new SallyportError(code, `${what}; ${mend}`, {
    server: name,
    supported: [modernVersion],
    ...(requested === null ? {} : { requested }),
  })
}

/** What a request of the later era says in its `_meta`, and this one does not. */
interface Lacking {
  readonly code: 'ERR_VERSION_UNSUPPORTED' | 'ERR_INVALID_PARAMS'
  readonly why: string
  /** The version that it says, or null */
  readonly requested: string | null
}

/** Whether a request says that it is of that version, and all that belongs to it. */
export const saysWhoSpeaks = (request: Request): boolean => lackingIn(request) === null

/** Null where nothing is lacking. Each is said once, in words that nobody could read otherwise. */
function lackingIn({ method, text, params }: Request): Lacking | null {
  const meta = metaOf(text, params)
  const [version, capabilities] = [versionKey, capabilitiesKey].map((key) => only(meta, key) ?? null)
  const said = version === null || version === undefined ? null : text.slice(version.start, version.end)
  if (said !== JSON.stringify(modernVersion)) {
    const got = said === null ? 'no' : said.slice(0, 40)
    const why = `${method} has ${got} ${versionKey} in its _meta, expected "${modernVersion}"`
    return { code: 'ERR_VERSION_UNSUPPORTED', why, requested: requestedBy(text, version ?? atStart(params)) }
  }
  if (capabilities !== null && capabilities !== undefined && text[capabilities.start] === '{') return null
  const why = `${method} has no ${capabilitiesKey} in its _meta, expected an object`
  return { code: 'ERR_INVALID_PARAMS', why, requested: null }
}

/** Where `initialize` of the older era says its version. */
const atStart = (params: Request['params']): Member | null =>
  params === null ? null : only(params.inner, 'protocolVersion')

/** A version as it is written there, if it is a short word; null for everything else. */
function requestedBy(text: string, at: Span | null): string | null {
  const written = at === null ? '' : text.slice(at.start, at.end)
  return /^"([\w.-]{1,40})"$/.exec(written)?.[1] ?? null
}

/** What is told of a server that does not speak the era in which a process can be shared. */
export const notStateless = (name: string, why: string): SallyportError => {
  const what = `mcp server ${name} does not speak ${modernVersion}, which instance: shared needs (${why})`
  return new SallyportError('ERR_ERA_UNSUPPORTED', `${what}; set instance: session`, {
    server: name,
    supported: [modernVersion],
  })
}
