// What hosts can ask of the daemon: their own instances, calls and events, and nothing of anybody else's.
import { SallyportError } from '../../errors.ts'
import { RawJson } from '../../lib/raw-json.ts'
import type { CallResult, Hello, HostMethods } from '../../rpc/protocol.ts'
import { feedEvents } from '../event-feed.ts'
import type { EventLog } from '../events.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import type { Governance } from '../governance/governance.ts'
import type { Outputs } from '../outputs.ts'
import type { Finder } from './no-secret.ts'
import { launchMethods, type RegistrationPorts } from './registration-methods.ts'
import type { Roster } from '../roster.ts'
import { searchTool, type ToolMethods } from './tool-methods.ts'
import type { Machine } from '../machine/machine.ts'
import type { InTurn } from '../turns.ts'
import type { Attach, MethodCall, MethodTable } from './methods.ts'

/** What the methods stand on. */
export interface MethodPorts {
  readonly supervisor: Supervisor
  readonly governance: Governance
  readonly roster: Roster
  readonly tools: ToolMethods
  readonly machine: Pick<Machine, 'pin' | 'unpin' | 'originOf'>
  readonly expectApart: RegistrationPorts['expectApart']
  readonly redactor: Finder
  readonly inTurn: InTurn
  /** Aborts when the daemon goes down */
  readonly stopping: AbortSignal
  readonly events: EventLog
  readonly outputs: Outputs
  /** The greeting, save who is greeted */
  readonly hello: Omit<Hello, 'principal'>
}

/** The methods of host.sock, which operator.sock has too. */
export function hostMethods(ports: MethodPorts): MethodTable<keyof HostMethods> {
  const { supervisor, events, hello, tools, outputs } = ports
  return {
    'sallyport/hello': (_params, { principal }) => ({ ...hello, principal }),
    'servers/list': (_params, { caller }) => ({ servers: supervisor.list(caller) }),
    'servers/get': ({ server }, { caller }) => supervisor.get(caller, server),
    'servers/start': ({ server }, { caller, signal }) => supervisor.start(caller, server, { signal }),
    'servers/stop': async ({ server }, { caller }) => ({
      stopped: await supervisor.stop(caller, server),
    }),
    ...launchMethods(ports),
    ...tools.table(),
    'tools/call': (params, call) => callTool(ports, params, call),
    'calls/cancel': ({ call_id, request, reason }, call) => {
      if (call_id === undefined && request === undefined)
        throw new SallyportError('ERR_INVALID_PARAMS', 'calls/cancel: expected a call_id, or a request')
      const isRequestCancelled = request !== undefined && call.cancel(request)
      const isCallCancelled =
        call_id !== undefined && supervisor.cancel(call.caller, call_id, reason ?? 'cancelled')
      return { cancelled: isRequestCancelled || isCallCancelled }
    },
    'calls/output': (params, { caller }) => outputs.read(caller, params),
    'events/subscribe': ({ since }, call) => subscribe(events, since ?? events.seq, call),
    'session/result': ({ session }, { caller }) => supervisor.sessionResult(caller, session),
  }
}

/** The search is a tool of ours, which no server has. */
function callTool(
  { supervisor, tools }: MethodPorts,
  { server, tool, arguments: args, timeout_ms, generation, lineage }: HostMethods['tools/call']['params'],
  call: MethodCall,
): Promise<CallResult> {
  if (server === searchTool.server && tool === searchTool.tool)
    return tools.call(Reflect.get(Object(args), 'query'), call)
  const asked = {
    server,
    tool,
    arguments: call.text('arguments') ?? new RawJson('{}'),
    timeoutMs: timeout_ms ?? null,
    generation: generation ?? null,
    lineage: lineage ?? null,
  }
  return supervisor.call(call.caller, asked, { signal: call.signal })
}

/** `session/attach`, for both sockets. */
export function attachVia(supervisor: Supervisor): Attach {
  return async (params, { caller }) => {
    const attachment = await supervisor.attach(caller, params)
    return {
      result: { session: attachment.session, server: attachment.server },
      take: (...host) => attachment.take(...host),
      abandon: () => attachment.abandon(),
    }
  }
}

function subscribe(
  events: EventLog,
  since: number,
  call: MethodCall,
): HostMethods['events/subscribe']['result'] {
  const { seq } = events
  if (since > seq)
    throw new SallyportError(
      'ERR_INVALID_PARAMS',
      `events/subscribe: params.since: got ${since}, expected at most ${seq}, the latest event; each start of the daemon numbers them anew: leave it out for what comes, or say 0 for all that is kept`,
      { seq },
    )
  call.afterReply((stream) => feedEvents(events, since, call.caller, stream))
  return { subscribed: true, seq }
}
