// What the daemon's method tables ask of the supervisor; src/supervisor/supervisor.ts provides it.
import type { Duplex } from 'node:stream'
import type { CallId, InstanceId, SessionId } from '../lib/ids.ts'
import type { RawJson } from '../lib/raw-json.ts'
import type {
  HostMethods,
  InstanceView,
  OperatorMethods,
  Principal,
  SallyportEvent,
  ServerDetail,
  ServerView,
} from '../rpc/protocol.ts'

/** Who asks, and how far they may see: a host sees its own instances and calls, the operator everybody's. */
export interface Caller {
  readonly principal: Principal
  readonly role: 'host' | 'operator'
}

/** A `tools/call` as the control socket took it. */
export interface ToolCall {
  readonly server: string
  readonly tool: string
  /** The arguments as the caller wrote them, an object, `{}` when absent */
  readonly arguments: RawJson
  /** Shorter than the server's own `call_ms`, or null */
  readonly timeoutMs: number | null
  /** Generation of the tool list that the caller saw, or null */
  readonly generation: number | null
}

/** A session that was granted and waits for its stream. */
export interface Attachment {
  readonly session: SessionId
  readonly server: string
  /**
   * Hands over the connection: `head` is what was read behind the attach request, then the stream's own bytes.
   * The supervisor owns the stream from here on.
   */
  take(stream: Duplex, head: Buffer): void
  /** The host went away before it could take over: the session ends, nothing was or will be read */
  abandon(): void
}

/** Events before they get a number and a time. */
export type Emit = (event: {
  readonly type: string
  readonly server: string | null
  readonly instance: InstanceId | null
  /** Uid whose event it is; null is everybody's */
  readonly principal: string | null
  readonly detail: SallyportEvent['detail']
}) => void

interface Waiting {
  readonly signal: AbortSignal
}

/** Every error is a `SallyportError`; every wait ends with the signal or its own deadline. Disposing stops all instances. */
export interface Supervisor extends AsyncDisposable {
  list(caller: Caller): readonly ServerView[]
  get(caller: Caller, server: string): ServerDetail
  start(caller: Caller, server: string, waiting: Waiting): Promise<InstanceView>
  stop(caller: Caller, server: string, waiting: Waiting): Promise<readonly InstanceId[]>
  tools(caller: Caller, server: string | null, waiting: Waiting): Promise<HostMethods['tools/list']['result']>
  call(caller: Caller, call: ToolCall, waiting: Waiting): Promise<HostMethods['tools/call']['result']>
  /** False when no such call of the caller's is in flight */
  cancel(caller: Caller, call: CallId, reason: string): boolean
  attach(caller: Caller, request: HostMethods['session/attach']['params']): Promise<Attachment>
  /** How a session ended; waits a bounded time for the end where it is near */
  sessionResult(caller: Caller, session: SessionId): Promise<HostMethods['session/result']['result']>
  test(caller: Caller, server: string, waiting: Waiting): Promise<OperatorMethods['servers/test']['result']>
  /** The last lines of a server's stderr and of its life */
  logs(caller: Caller, server: string, lines: number): OperatorMethods['servers/logs']['result']
  /** Lines from now on; ends with the signal */
  followLogs(caller: Caller, server: string, waiting: Waiting): AsyncIterable<string>
  explain(
    caller: Caller,
    request: OperatorMethods['policy/explain']['params'],
  ): OperatorMethods['policy/explain']['result']
}
