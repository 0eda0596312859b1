// Ids that cannot be mistaken for one another, each with a prefix that a person recognises in a log.
import { nanoid } from 'nanoid'

declare const brand: unique symbol
type Branded<T extends string> = string & { readonly [brand]: T }

/** One running or past process tree of a server. */
export type InstanceId = Branded<'InstanceId'>
/** One `tools/call`, from proposal to outcome. */
export type CallId = Branded<'CallId'>
/** One attached MCP session. */
export type SessionId = Branded<'SessionId'>
/** One life of a daemon. */
export type DaemonId = Branded<'DaemonId'>

const prefixes = { instance: 'i', call: 'c', session: 's', daemon: 'd' } as const

/** Returns a new instance id, unique across daemons and boots. */
export const newInstanceId = (): InstanceId => `${prefixes.instance}-${nanoid(12)}` as InstanceId
/** Returns a new call id. */
export const newCallId = (): CallId => `${prefixes.call}-${nanoid(12)}` as CallId
/** Returns a new session id; it is unguessable, since holding it lets a shim ask how the session ended. */
export const newSessionId = (): SessionId => `${prefixes.session}-${nanoid(22)}` as SessionId
/** Returns a new daemon id. */
export const newDaemonId = (): DaemonId => `${prefixes.daemon}-${nanoid(12)}` as DaemonId
/** Returns a name for a file that is not whole yet; no two have the same, and `ls` does not show it. */
export const newDraftName = (): string => `.sallyport-${nanoid(12)}.draft`
/** Returns an id for a JSON-RPC request of Sallyport's own in somebody else's session; neither side can guess it. */
export const newRequestId = (): string => `sallyport-${nanoid(22)}`
