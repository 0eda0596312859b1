// What the daemon's method tables ask of the supervisor; src/supervisor/supervisor.ts provides it.
import type { CallId, InstanceId, SessionId } from '../lib/ids.ts'
import type { HostMethods, InstanceView, OperatorMethods, ServerDetail, ServerView } from '../rpc/protocol.ts'
import type { Attachment, Caller, ToolCall } from '../supervisor/ports.ts'

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
