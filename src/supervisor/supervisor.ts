// Everything that runs: the servers of the config, their instances, sessions and calls in flight.
import { SallyportError } from '../errors.ts'
import { type CallId, type InstanceId, newCallId, type SessionId } from '../lib/ids.ts'
import type { HostMethods, InstanceView, OperatorMethods, ServerDetail, ServerView } from '../rpc/protocol.ts'
import { callTool } from './call-tool.ts'
import type { Attachment, Caller, Ports, ToolCall } from './ports.ts'
import { RegisteredServer, sees } from './registered-server.ts'
import type { Session } from './session.ts'
import { SessionResults } from './session-results.ts'
import { testServer } from './test-server.ts'
import { viewTools, withoutCollisions } from './tool-view.ts'

interface Waiting {
  readonly signal: AbortSignal
}

/** Lines that a follower of logs may be behind before it loses the oldest */
const maxLogLag = 1000

/** Every failure is a `SallyportError`; every wait ends with the signal or its own deadline. Disposing stops everything. */
export class Supervisor implements AsyncDisposable {
  readonly #ports: Ports
  readonly #servers: ReadonlyMap<string, RegisteredServer>
  readonly #results = new SessionResults()
  readonly #calls = new Map<CallId, { readonly principal: string; readonly controller: AbortController }>()
  #generation = 0
  #isStopping = false

  constructor(ports: Ports) {
    this.#ports = ports
    const nextGeneration = (): number => ++this.#generation
    this.#servers = new Map(
      [...ports.settings.servers].map(([name, settings]) => [
        name,
        new RegisteredServer(settings, ports, nextGeneration),
      ]),
    )
  }

  /** Starts the servers that say `eager`, a few at a time, for one principal; a failure stays with its server. */
  async startEager(caller: Caller, { signal }: Waiting): Promise<void> {
    const eager = [...this.#servers.values()].filter(
      ({ settings }) => settings.start === 'eager' && settings.enabled,
    )
    const next = eager.values()
    const work = async (): Promise<void> => {
      for (const server of next) {
        if (signal.aborted) return
        await this.start(caller, server.settings.name, { signal }).catch((thrown: unknown) => {
          const { code, message } = SallyportError.from(thrown)
          const detail = { code, reason: message }
          this.#ports.emit({
            type: 'server/not-started',
            server: server.settings.name,
            instance: null,
            principal: null,
            detail,
          })
        })
      }
    }
    await Promise.all(Array.from({ length: this.#ports.settings.startup.concurrency }, work))
  }

  list(caller: Caller): readonly ServerView[] {
    return [...this.#servers.values()].map((server) => server.view(caller))
  }

  get(caller: Caller, server: string): ServerDetail {
    return this.#server(server).detail(caller)
  }

  /** Starts the caller's control instance and waits until it is ready. */
  async start(caller: Caller, server: string, waiting: Waiting): Promise<InstanceView> {
    const slot = this.#usable(server).slot(caller.principal.id)
    await slot.start(waiting)
    return slot.view()
  }

  /** Stops the caller's instances; the operator's stop is everybody's. */
  async stop(caller: Caller, server: string, _waiting: Waiting): Promise<readonly InstanceId[]> {
    return this.#server(server).stop(caller, `${caller.role} ${caller.principal.id} stopped it`)
  }

  /** Stops a server for all and keeps it from starting until `release`. */
  async quarantine(server: string, reason: string): Promise<void> {
    await this.#server(server).quarantine(reason)
  }

  release(server: string, reason: string): void {
    this.#server(server).release(reason)
  }

  /** The tools of the caller's connected servers; starts nothing. */
  async tools(
    caller: Caller,
    server: string | null,
    waiting: Waiting,
  ): Promise<HostMethods['tools/list']['result']> {
    const asked = server === null ? [...this.#servers.values()] : [this.#server(server)]
    const { gate, governor, settings } = this.#ports
    const lists = await Promise.all(
      asked.map(async (one) => {
        const slot = one.slot(caller.principal.id)
        const surface = await slot.tools(waiting)
        const shown = (surface?.tools ?? []).filter(({ listed }) =>
          governor.shows(one.settings, slot.instance.id, listed),
        )
        return viewTools(one.settings, shown, gate, settings.tools)
      }),
    )
    const { tools, collisions } = withoutCollisions(lists.flat())
    for (const name of collisions) {
      const reason = 'two tools would be shown under one name, so neither is'
      this.#ports.emit({
        type: 'tools/collision',
        server: null,
        instance: null,
        principal: caller.principal.id,
        detail: { name, reason },
      })
    }
    return { tools, generation: this.#generation }
  }

  async call(
    caller: Caller,
    call: ToolCall,
    { signal }: Waiting,
  ): Promise<HostMethods['tools/call']['result']> {
    const server = this.#server(call.server)
    this.#requireRunning()
    const id = newCallId()
    const controller = new AbortController()
    this.#calls.set(id, { principal: caller.principal.id, controller })
    try {
      const either = AbortSignal.any([signal, controller.signal])
      return await callTool({ id, call, caller, server, ports: this.#ports, signal: either })
    } finally {
      this.#calls.delete(id)
    }
  }

  /** False when no such call of the caller's is in flight. */
  cancel(caller: Caller, id: CallId, reason: string): boolean {
    const call = this.#calls.get(id)
    if (call === undefined || !sees(caller, call.principal)) return false
    call.controller.abort(new SallyportError('ERR_CALL_CANCELLED', `call ${id} was cancelled: ${reason}`))
    return true
  }

  /** Grants a session; nothing is started before the host's first message. */
  async attach(
    caller: Caller,
    { server, project }: HostMethods['session/attach']['params'],
  ): Promise<Attachment> {
    const registered = this.#usable(server)
    const policy = project === undefined ? this.#ports : await this.#ports.narrow(project, caller)
    if (policy.settings.servers.get(server)?.enabled !== true) {
      throw new SallyportError(
        'ERR_SERVER_DISABLED',
        `mcp server ${server} is disabled by the project ${project ?? ''}`,
      )
    }
    const session = registered.open(caller, policy)
    this.#results.expect(session)
    return attachmentOf(session, server)
  }

  /** How a session ended; waits a bounded time for an end that is near. */
  async sessionResult(caller: Caller, session: SessionId): Promise<HostMethods['session/result']['result']> {
    return this.#results.of(caller, session)
  }

  /** Starts a server apart from all others, speaks to it, stops it, and says how each step went. */
  async test(
    caller: Caller,
    server: string,
    waiting: Waiting,
  ): Promise<OperatorMethods['servers/test']['result']> {
    const { settings, logs } = this.#usable(server)
    return testServer({
      server: settings,
      principal: caller.principal.id,
      logs,
      ports: this.#ports,
      ...waiting,
    })
  }

  /** The last lines of a server's stderr. */
  logs(_caller: Caller, server: string, lines: number): OperatorMethods['servers/logs']['result'] {
    const { logs } = this.#server(server)
    return { lines: logs.lines(lines), dropped: logs.dropped }
  }

  /** Lines from now on; a reader that falls behind loses the oldest. */
  async *followLogs(_caller: Caller, server: string, { signal }: Waiting): AsyncIterable<string> {
    const lines: string[] = []
    let wake = (): void => undefined
    const ignore = this.#server(server).logs.listen((line) => {
      lines.push(line)
      if (lines.length > maxLogLag) lines.shift()
      wake()
    })
    const abort = (): void => wake()
    signal.addEventListener('abort', abort, { once: true })
    try {
      while (!signal.aborted) {
        const line = lines.shift()
        if (line !== undefined) yield line
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    } finally {
      ignore()
      signal.removeEventListener('abort', abort)
    }
  }

  /** What policy says to a call, without making it. */
  explain(
    _caller: Caller,
    { server, tool, arguments: value = {} }: OperatorMethods['policy/explain']['params'],
  ): OperatorMethods['policy/explain']['result'] {
    const { settings } = this.#server(server)
    const kind = tool.includes('/') ? 'method' : 'tool'
    const { action, rule, reason } = this.#ports.gate.decide({
      server: settings,
      kind,
      subject: tool,
      arguments: value,
    })
    return { action, rule, reason }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    const reason = new SallyportError('ERR_DAEMON_UNAVAILABLE', 'Sallyport is stopping')
    for (const { controller } of this.#calls.values()) controller.abort(reason)
    const ends = await Promise.allSettled(
      [...this.#servers.values()].map((server) => server[Symbol.asyncDispose]()),
    )
    this.#results.clear()
    for (const end of ends) if (end.status === 'rejected') throw SallyportError.from(end.reason)
  }

  #server(name: string): RegisteredServer {
    const server = this.#servers.get(name)
    if (server !== undefined) return server
    throw new SallyportError(
      'ERR_SERVER_NOT_FOUND',
      `no server is called ${JSON.stringify(name.slice(0, 128))}; see sallyport ps`,
      {
        server: name.slice(0, 128),
      },
    )
  }

  #usable(name: string): RegisteredServer {
    const server = this.#server(name)
    this.#requireRunning()
    server.requireUsable()
    return server
  }

  #requireRunning(): void {
    if (this.#isStopping) throw new SallyportError('ERR_DAEMON_UNAVAILABLE', 'Sallyport is stopping')
  }
}

function attachmentOf(session: Session, server: string): Attachment {
  return {
    session: session.id,
    server,
    take: (stream, head) => session.take(stream, head),
    abandon: () => void session.stop('the host went away').catch(() => undefined),
  }
}
