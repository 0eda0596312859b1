// A subscription of Sallyport's own: a server of the later era tells of changes in its lists to whoever asked, and to nobody else.
import type { Notification } from '../message/envelope.ts'
import { idAt, only, subscriptionIn } from '../shared/lines.ts'
import type { Introduction } from './surface.ts'

export const listen = 'subscriptions/listen'

/** Capability -> the changes of its list, as a subscription names them */
const changes = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
} as const

/** Parameters that ask for every change the server says it tells of; null where it tells of none. */
export function listenParams({ capabilities }: Introduction): string | null {
  const told = Object.entries(changes).filter(([name]) => {
    const capability: unknown = Object.hasOwn(capabilities ?? {}, name) ? capabilities?.[name] : null
    return Reflect.get(Object(capability), 'listChanged') === true
  })
  if (told.length === 0) return null
  return JSON.stringify({ notifications: Object.fromEntries(told.map(([, change]) => [change, true])) })
}

/** True for a notification of the subscription that was asked for by the request of that key, and for the one that ends it. */
export const isOf = (key: string | null, { method, text, params }: Notification): boolean =>
  key !== null &&
  (idAt(text, subscriptionIn(text, params))?.key === key ||
    (method === 'notifications/cancelled' && idAt(text, only(params?.inner ?? [], 'requestId'))?.key === key))
