// What a host can't ask of a process that it shares: whatever sets the state of a connection, which is not its own.
import { SallyportError } from '../../errors.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { modernVersion } from '../message/modern-dress.ts'

/** Most requests that one session may have in flight there, so that none takes the whole process */
export const mostShared = 256

/** Method of an older era -> what the later one has in its place */
const replaced: Readonly<Record<string, string>> = {
  initialize: `a host of ${modernVersion}, whose requests each say who speaks`,
  'logging/setLevel': `_meta["io.modelcontextprotocol/logLevel"] of each request`,
  'resources/subscribe': 'subscriptions/listen',
  'resources/unsubscribe': 'notifications/cancelled for the subscriptions/listen',
}

/** Why the request can't be made of that server, or null. */
export function whyNotShared({ name, instance }: ServerSettings, method: string): SallyportError | null {
  const instead = instance === 'shared' && Object.hasOwn(replaced, method) ? replaced[method] : undefined
  if (instead === undefined) return null
  const what = `${method} sets up a connection, and the process of mcp server ${name} is shared by many (instance: shared)`
  const mend = `use ${instead}, or have the operator set instance: session`
  return new SallyportError('ERR_ERA_UNSUPPORTED', `${what}; ${mend}`, {
    server: name,
    supported: [modernVersion],
  })
}

/** What is told of a server that does not speak the era in which a process can be shared. */
export const notStateless = (name: string, why: string): SallyportError => {
  const what = `mcp server ${name} does not speak ${modernVersion}, which instance: shared needs (${why})`
  return new SallyportError('ERR_ERA_UNSUPPORTED', `${what}; set instance: session`, {
    server: name,
    supported: [modernVersion],
  })
}
