// What policy tells the relay: how a method may pass, and whether a call may. `call/` answers, `supervisor/` asks.
import type { ErrorCode } from '../errors.ts'
import type { Action, ServerSettings } from './settings.ts'

/** Who wrote the message. */
export type Sender = 'host' | 'server'

/** A request expects an answer, a notification does not. */
export type Shape = 'request' | 'notification'

/**
 * How a message of one method passes:
 * - `relay` as it came
 * - `handshake` as it came; its answer fixes the protocol version
 * - `probe` reaches only an instance that may die of it
 * - `filter` as it came; its answer loses the tools that policy denies
 * - `list` as it came; its answer loses the prompts or resources that policy denies, or all where what is listed is not what was accepted
 * - `call` a tool call, and `govern` any other governed request, pass when `decide` allows
 * - `listen` is governed when it names resources, otherwise relayed
 * - `cancel` as it came; the request it names expects no answer any more
 * - `sampling`, `elicitation`, `roots` and `client-task` obey the server's settings of that name
 * - `refuse` never passes
 */
export type Route =
  | 'relay'
  | 'handshake'
  | 'probe'
  | 'filter'
  | 'list'
  | 'call'
  | 'govern'
  | 'listen'
  | 'cancel'
  | 'sampling'
  | 'elicitation'
  | 'roots'
  | 'client-task'
  | 'refuse'

/** A request that policy decides. */
export interface GovernedRequest {
  readonly server: Pick<ServerSettings, 'name' | 'file' | 'scope' | 'trust' | 'tools'>
  /** `tool` for `tools/call`, `method` for the others */
  readonly kind: 'tool' | 'method'
  /** The tool's name, or the method's */
  readonly subject: string
  /** What `where` reads: a tool's arguments, or a method's parameters */
  readonly arguments: unknown
}

/** What policy says, with the rule that said it and the reason for people. */
export interface Decision {
  readonly action: Action
  /** `origin` of the rule, or null when the server's trust or lists decided, or no rule did */
  readonly rule: string | null
  readonly reason: string
  /** What a caller that may not pass is told; null when it may */
  readonly code: ErrorCode | null
}

/** True when a request with these parameters, whatever the others are, could never pass. */
export type Hides = (known: Readonly<Record<string, string>> | null) => boolean

/** Policy as the relay sees it. Pure: no wait, no effect. */
export interface Gate {
  route(sender: Sender, shape: Shape, method: string): Route
  /** `hasEarned` says that the tool has earned trust of its own, which a pattern's allow needs for an untrusted server */
  decide(request: GovernedRequest, hasEarned?: boolean): Decision
  /** False when no call of that tool could ever be allowed, whatever its arguments */
  lists(server: GovernedRequest['server'], tool: string): boolean
  /**
   * Which requests of a method could never pass, by those of their parameters that are known; null stands for parameters
   * that two readers could take differently. Null when there is no such request.
   */
  hides(server: GovernedRequest['server'], method: string): Hides | null
}
