// Everything that runs: the servers of the config, their instances, sessions and calls in flight.
import { SallyportError } from '../errors.ts'
import { type CallId, type InstanceId, newCallId, type SessionId } from '../lib/ids.ts'
import { meant } from '../lib/nearest.ts'
import type {
  HostMethods,
  InstanceView,
  LogLine,
  OperatorMethods,
  ServerDetail,
  ServerView,
} from '../rpc/protocol.ts'
import type { ServerSettings } from '../schema/settings.ts'
import { Generations } from './control/generations.ts'
import { callTool } from './control/call-tool.ts'
import type { ControlSlot } from './control/control-slot.ts'
import type { Attachment, Caller, Ports, ToolCall } from './ports.ts'
import { followLog } from './instance/log-follow.ts'
import { RegisteredServer, sees } from './registered-server.ts'
import { SessionResults } from './session/results.ts'
import { type ShownTools, shownTools } from './control/shown-tools.ts'
import type { Surface } from './client/surface.ts'
import type { DescriptionLength } from './control/tool-view.ts'

interface Waiting {
  readonly signal: AbortSignal
}

interface CallInFlight {
  readonly principal: string
  readonly controller: AbortController
  /** Its server has it, or a process of its own is on the way to */
  isSent: boolean
}

/** Every failure is a `SallyportError`; every wait ends with the signal or its own deadline. Disposing stops everything. */
export class Supervisor implements AsyncDisposable {
  readonly #ports: Ports
  readonly #servers: Map<string, RegisteredServer>
  readonly #results = new SessionResults()
  readonly #calls = new Map<CallId, CallInFlight>()
  readonly #generations = new Generations()
  #isStopping = false

  constructor(ports: Ports) {
    this.#ports = ports
    this.#servers = new Map()
    for (const settings of ports.settings.servers.values()) this.add(settings, null)
  }

  /** Takes one more server; `owner` is the principal who alone may see it, beside the operator, or null. */
  add(settings: ServerSettings, owner: string | null): void {
    const former = this.#servers.get(settings.name) ?? null
    const server = new RegisteredServer(settings, this.#ports, this.#generations, { owner, former })
    this.#servers.set(settings.name, server)
  }

  has(name: string): boolean {
    return this.#servers.has(name)
  }

  /**
   * Puts another server, or with null none, in the place of the one that has the name. No call of that one is admitted from
   * this turn on; resolves when it is stopped, with what was running.
   */
  async replace(
    name: string,
    next: { readonly settings: ServerSettings; readonly owner: string | null } | null,
    reason: string,
  ): Promise<readonly InstanceId[]> {
    const former = this.#servers.get(name)
    if (next === null) this.#servers.delete(name)
    else this.add(next.settings, next.owner)
    return former === undefined ? [] : former.retire(reason)
  }

  /** Policy says something else by now, or may: what lasts of any session ends where it may not go on. */
  review(): void {
    for (const server of this.#servers.values()) server.review()
  }

  /** Stops a server for everybody and forgets it, as `replace` does; resolves with the ids of what was running. */
  async remove(caller: Caller, name: string): Promise<readonly InstanceId[]> {
    this.#server(caller, name) // or there is no such server for this caller
    return this.replace(name, null, `${caller.role} ${caller.principal.id} removed it`)
  }

  /** The settings of a server that the caller may see. */
  settingsOf(caller: Caller, name: string): ServerSettings {
    return this.#server(caller, name).settings
  }

  /** Starts a server apart, a quarantined one too, and says what it lists. */
  async look(caller: Caller, name: string, waiting: Waiting): Promise<Surface> {
    const server = this.#server(caller, name)
    server.requireRunnable()
    return server.apart.look(caller.principal.id, waiting)
  }

  /** Starts those servers that say `eager`, a few at a time, for one principal; a failure stays with its server. */
  async startEager(caller: Caller, names: readonly string[], { signal }: Waiting): Promise<void> {
    const eager = [...this.#servers.values()].filter(
      ({ settings }) => names.includes(settings.name) && settings.start === 'eager' && settings.enabled,
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
    return this.#visible(caller).map((server) => server.view(caller))
  }

  get(caller: Caller, server: string): ServerDetail {
    return this.#server(caller, server).detail(caller)
  }

  /** Starts the caller's control instance and waits until it is ready. */
  async start(caller: Caller, server: string, waiting: Waiting): Promise<InstanceView> {
    return this.#usable(caller, server).start(caller, waiting)
  }

  /** Stops the caller's instances; the operator's stop is everybody's. */
  async stop(
    caller: Caller,
    server: string,
    reason = `${caller.role} ${caller.principal.id} stopped it`,
  ): Promise<readonly InstanceId[]> {
    return this.#server(caller, server).stop(caller, reason)
  }

  /** Stops a server for all and keeps it from starting until `release`. */
  async quarantine(server: string, reason: string): Promise<void> {
    await this.#servers.get(server)?.quarantine(reason)
  }

  /** The operator's word that a server may run again, once nothing of it runs any more; false when none of that name is quarantined. */
  async release(server: string, reason: string): Promise<boolean> {
    return (await this.#servers.get(server)?.release(reason)) ?? false
  }

  /** What the caller's own control calls to a server find of it; null where none started it yet. */
  own(caller: Caller, server: string): Pick<ControlSlot, 'view' | 'known'> | null {
    return this.#server(caller, server).madeSlot(caller.principal.id)
  }

  /** The tools of the caller's connected servers; starts nothing. Only a server that is named is waited for. */
  async tools(
    caller: Caller,
    server: string | null,
    { signal, length = 'list' }: Waiting & { readonly length?: DescriptionLength },
  ): Promise<ShownTools & { readonly generation: number }> {
    const named = server === null ? null : this.#server(caller, server)
    await named?.madeSlot(caller.principal.id)?.settled({ signal })
    const servers = named === null ? this.#visible(caller) : [named]
    const generation = this.#generations.latest // of before: what changes while they are looked at is another
    return { ...(await shownTools(servers, caller, this.#ports, length)), generation }
  }

  async call(
    caller: Caller,
    call: ToolCall,
    { signal }: Waiting,
  ): Promise<HostMethods['tools/call']['result']> {
    const server = this.#server(caller, call.server)
    this.#requireRunning()
    const id = newCallId()
    const controller = new AbortController()
    const inFlight = { principal: caller.principal.id, controller, isSent: false }
    this.#calls.set(id, inFlight)
    const sent = (): void => void (inFlight.isSent = true)
    try {
      const either = AbortSignal.any([signal, controller.signal])
      return await callTool({ id, call, caller, server, ports: this.#ports, signal: either, sent })
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
    this.#usable(caller, server)
    const policy = project === undefined ? this.#ports : await this.#ports.narrow(project, caller)
    if (policy.settings.servers.get(server)?.enabled !== true) {
      throw new SallyportError(
        'ERR_SERVER_DISABLED',
        `mcp server ${server} is disabled by the project ${project ?? ''}`,
      )
    }
    const session = this.#usable(caller, server).open(caller, policy)
    this.#results.expect(session)
    return {
      session: session.id,
      server,
      take: (...host) => session.take(...host),
      abandon: () => void session.stop('the host went away').catch(() => undefined),
    }
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
    return this.#usable(caller, server).apart.test(caller.principal.id, waiting)
  }

  /** The last lines of a server's stderr; who follows gets one that has no end yet once it has. */
  logs(
    caller: Caller,
    server: string,
    lines: number,
    follow = false,
  ): OperatorMethods['servers/logs']['result'] {
    const { logs } = this.#server(caller, server)
    return logs.last(lines, follow ? 'ended' : 'all')
  }

  /** Lines from now on, each with how many went by before it. */
  followLogs(caller: Caller, server: string, { signal }: Waiting): AsyncIterable<LogLine> {
    return followLog(this.#server(caller, server).logs, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    const reason = new SallyportError('ERR_DAEMON_UNAVAILABLE', 'Sallyport is stopping')
    // What was sent may be answered while its server is on the ladder; nothing else is sent, or started.
    for (const { controller, isSent } of this.#calls.values()) if (!isSent) controller.abort(reason)
    const ends = await Promise.allSettled(
      [...this.#servers.values()].map((server) => server[Symbol.asyncDispose]()),
    )
    for (const { controller } of this.#calls.values()) controller.abort(reason)
    this.#results.clear()
    for (const end of ends) if (end.status === 'rejected') throw SallyportError.from(end.reason)
  }

  #visible(caller: Caller): readonly RegisteredServer[] {
    return [...this.#servers.values()].filter(({ owner }) => owner === null || sees(caller, owner))
  }

  /** A server that the caller may not see is not there. */
  #server(caller: Caller, name: string): RegisteredServer {
    const server = this.#servers.get(name)
    if (server !== undefined && (server.owner === null || sees(caller, server.owner))) return server
    const known = this.#visible(caller).map(({ settings }) => settings.name)
    throw new SallyportError(
      'ERR_SERVER_NOT_FOUND',
      `no server is called ${JSON.stringify(name.slice(0, 128))}${meant(name, known)}; see sallyport ps`,
      {
        server: name.slice(0, 128),
      },
    )
  }

  #usable(caller: Caller, name: string): RegisteredServer {
    const server = this.#server(caller, name)
    this.#requireRunning()
    server.requireUsable()
    return server
  }

  #requireRunning(): void {
    if (this.#isStopping) throw new SallyportError('ERR_DAEMON_UNAVAILABLE', 'Sallyport is stopping')
  }
}
