// The closed table of MCP methods, both eras, both directions: what is not here does not pass.
import type { Route, Sender, Shape } from '../schema/gate.ts'

type Methods = Readonly<Record<string, Route>>

const hostRequests: Methods = {
  initialize: 'handshake',
  'server/discover': 'probe',
  ping: 'relay',
  'tools/list': 'filter',
  'tools/call': 'call',
  'resources/list': 'list',
  'resources/templates/list': 'list',
  'resources/read': 'govern',
  'resources/subscribe': 'govern',
  'resources/unsubscribe': 'govern',
  'prompts/list': 'list',
  'prompts/get': 'govern',
  'completion/complete': 'govern',
  'logging/setLevel': 'relay',
  'subscriptions/listen': 'listen',
  'tasks/get': 'govern',
  'tasks/list': 'govern',
  'tasks/result': 'govern',
  'tasks/update': 'govern',
  'tasks/cancel': 'govern',
}

const hostNotifications: Methods = {
  'notifications/initialized': 'relay',
  'notifications/cancelled': 'cancel',
  'notifications/progress': 'relay',
  'notifications/roots/list_changed': 'roots',
  'notifications/tasks/status': 'client-task',
}

const serverRequests: Methods = {
  ping: 'relay',
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
  'tasks/get': 'client-task',
  'tasks/list': 'client-task',
  'tasks/result': 'client-task',
  'tasks/cancel': 'client-task',
}

const serverNotifications: Methods = {
  'notifications/cancelled': 'cancel',
  'notifications/progress': 'relay',
  'notifications/message': 'relay',
  'notifications/tools/list_changed': 'relay',
  'notifications/resources/list_changed': 'relay',
  'notifications/resources/updated': 'relay',
  'notifications/prompts/list_changed': 'relay',
  'notifications/elicitation/complete': 'elicitation',
  'notifications/tasks/status': 'relay',
  'notifications/tasks': 'relay',
  'notifications/subscriptions/acknowledged': 'relay',
}

/** The whole table, for documentation and tests. */
export const methods: Readonly<Record<Sender, Readonly<Record<Shape, Methods>>>> = {
  host: { request: hostRequests, notification: hostNotifications },
  server: { request: serverRequests, notification: serverNotifications },
}

const table = {
  host: { request: toMap(hostRequests), notification: toMap(hostNotifications) },
  server: { request: toMap(serverRequests), notification: toMap(serverNotifications) },
}

/** How a message of that method passes; `refuse` for every method that the table does not hold. */
export const route = (sender: Sender, shape: Shape, method: string): Route =>
  table[sender][shape].get(method) ?? 'refuse'

function toMap(entries: Methods): ReadonlyMap<string, Route> {
  return new Map(Object.entries(entries))
}
