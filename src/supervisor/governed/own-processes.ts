// Processes of one call each: launched with what the call may use, introduced, asked once, and gone when it is over.
import { SallyportError } from '../../errors.ts'
import { unlessAborted } from '../../lib/deadline.ts'
import type { InstanceId } from '../../lib/ids.ts'
import { type Comparing, onceCompared } from '../../lib/once-compared.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import type { Admission } from '../../schema/governor.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Introduced } from '../lanes/conversation.ts'
import { paramsWithCredentials } from '../message/credential-meta.ts'
import { Instance } from '../instance/instance.ts'
import type { Aftermath, Lost } from '../instance/life.ts'
import { bugOf } from '../instance/notes.ts'
import type { LogRing } from '../instance/log-ring.ts'
import type { Answer } from '../client/answer.ts'
import type { RequestOptions } from '../client/options.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { Ports, Running } from '../ports.ts'
import { comparingOf } from '../client/quiet.ts'
import { readTools } from '../client/surface.ts'
import { Survey } from '../client/survey.ts'
import { noList, unavailable } from '../message/unavailable.ts'

export interface OwnProcessOptions {
  readonly server: ServerSettings
  readonly principal: string
  /** Most tools of a process that are looked at */
  readonly toolLimit: number
  readonly ports: Pick<Ports, 'launch' | 'pools' | 'emit' | 'gate' | 'governor'>
  readonly logs: LogRing
  /** Told of a process that was lost before it had answered its call */
  readonly lost: (lost: Lost) => unknown
}

/** How a call's process is spoken to, and what of its words is passed on. */
export interface Speech {
  /** How the host introduced itself, null where Sallyport introduces itself; false in the era that has no handshake */
  readonly introduced?: Introduced | null | false
  /** Hears its notifications, as they came, in latin1 reading with their line feed */
  readonly heard?: (line: string) => void
}

const over = 'its call is over'

/** Whoever made it disposes of it; then none of them runs any more. */
export class OwnProcesses implements AsyncDisposable {
  readonly #options: OwnProcessOptions
  readonly #running = new Map<InstanceId, Instance>()
  /** The clients of those of `#running` that have not been sent their call */
  readonly #meeting = new Map<InstanceId, McpClient>()
  /** Calls that are neither sent nor refused, by their processes */
  readonly #unsent = new Map<InstanceId, Admission>()
  /** Those of `#running` whose end is under way */
  readonly #ending = new Set<InstanceId>()
  /** Why those of `#running` were stopped in whose call somebody else stopped them */
  readonly #stoppedFor = new Map<InstanceId, string>()
  /** How those ended that nobody had stopped: one that had answered was free to */
  readonly #lost = new Map<InstanceId, Lost>()

  constructor(options: OwnProcessOptions) {
    this.#options = options
  }

  views(): readonly InstanceView[] {
    return [...this.#running.values()].map((instance) => instance.view())
  }

  /** Launches the process that the call was admitted for. Fails as a launch does; nothing is left then. */
  async start(process: InstanceId): Promise<{ readonly instance: Instance; readonly process: Running }> {
    const { server, principal, ports, logs } = this.#options
    const { launch, emit } = ports
    const afterLoss = (lost: Lost): Aftermath => {
      this.#lost.set(process, lost)
      return { event: 'ended' }
    }
    const instance = new Instance({ server, purpose: 'call', principal, launch, emit, logs, afterLoss })
    this.#running.set(process, instance)
    try {
      return { instance, process: await instance.start(process) }
    } catch (error) {
      this.#running.delete(process)
      throw error
    }
  }

  /**
   * Sends one `tools/call` to a process of its own, once introduced and asked for its tools. What was admitted is looked at once
   * more in the turn of the dispatch, when all is compared that it lists, and that the server said to have changed until then.
   * What keeps it from being sent until then, other than its caller, refuses it, on record.
   */
  async call(
    admission: Admission & { readonly process: InstanceId },
    params: string,
    options: RequestOptions & Speech,
  ): Promise<Answer> {
    this.#unsent.set(admission.process, admission)
    try {
      return await this.#call(admission, params, options)
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      throw options.signal.aborted ? error : await this.#refuseUnsent(admission.process, error)
    } finally {
      this.#unsent.delete(admission.process)
    }
  }

  /** Refuses, on record, every call that is not sent yet. */
  refuseUnsent(error: SallyportError): void {
    for (const process of this.#unsent.keys()) void this.#refuseUnsent(process, error)
  }

  /** Resolves with what the caller of that process is told. */
  async #refuseUnsent(process: InstanceId, error: SallyportError): Promise<SallyportError> {
    const admission = this.#unsent.get(process)
    if (admission === undefined) return error
    this.#unsent.delete(process)
    return this.#options.ports.governor.refuse(admission, error)
  }

  async #call(
    { process: id, secrets, ...admitted }: Admission & { readonly process: InstanceId },
    params: string,
    { introduced = null, heard, ...options }: RequestOptions & Speech,
  ): Promise<Answer> {
    const { server, ports } = this.#options
    const stop = (): void => {
      this.#unsent.delete(id) // that is its end, however long the launch takes to be called off
      this.end(id, 'the caller waits no longer')
    }
    options.signal.addEventListener('abort', stop, { once: true })
    let survey: Survey | null = null
    let isElsewhere = false // what failed is the process that the server's surface is known by: its loss is counted there
    try {
      options.signal.throwIfAborted()
      const { instance, process } = await this.start(id)
      const client: McpClient = new McpClient({
        process,
        server,
        gate: ports.gate,
        isModern: introduced === false,
        listChanged: () => survey?.changed(),
        note: (type, detail, bug) => ports.emit({ ...this.#about(id), type, detail, ...bugOf(bug) }),
        ...(heard === undefined ? {} : { heard }),
      })
      const { signal } = options
      const handshake = { timeoutMs: server.timeouts.initializeMs, signal }
      this.#meeting.set(id, client)
      if (introduced !== false) await client.handshake(handshake, introduced)
      instance.ready()
      if (instance.state !== 'ready') throw unavailable(server.name, instance.reason)
      // Not before: what is built for the next call takes time from this one's start.
      ports.pools.prepare(server.name)
      survey = this.#surveyOf(client, id, signal)
      const listed = comparingOf(server, () => survey?.known() ?? null)
      const elsewhere = (thrown: unknown): never => {
        isElsewhere = true
        throw thrown
      }
      const comparing = (): Promise<void> | null => admitted.comparing()?.catch(elsewhere) ?? listed()
      const values = secrets?.meta ?? null
      const sent = values === null ? params : paramsWithCredentials(params, values)
      const send = async (): Promise<Answer> => {
        this.#meeting.delete(id)
        signal.throwIfAborted() // it is settled by then
        this.#unsent.delete(id)
        const refused = ports.governor.confirm({ ...admitted, process: id, secrets })
        if (refused !== null) throw await refused
        return client.request('tools/call', sent, options)
      }
      return await unlessAborted(inTurn(comparing, send), signal)
    } catch (thrown) {
      const error = SallyportError.from(options.signal.aborted ? options.signal.reason : thrown)
      const why = this.#stoppedFor.get(id) ?? null
      const lost = this.#lost.get(id) ?? (isElsewhere ? null : lostWith(error))
      if (why === null && !options.signal.aborted && lost?.retryable === true) this.#options.lost(lost)
      throw why !== null && error.code === 'ERR_SERVER_UNAVAILABLE' ? unavailable(server.name, why) : error
    } finally {
      survey?.end()
      options.signal.removeEventListener('abort', stop)
      this.#stoppedFor.delete(id)
      this.#lost.delete(id)
      this.end(id, over)
    }
  }

  /** Stops the process of a call; the caller does not wait for that. */
  end(process: InstanceId, reason: string): void {
    this.#meeting.delete(process)
    const instance = this.#running.get(process)
    if (instance === undefined || this.#ending.has(process)) return
    this.#ending.add(process)
    void instance
      .stop(reason)
      .catch((thrown: unknown) => {
        const { code, message } = SallyportError.from(thrown)
        this.#options.ports.emit({
          ...this.#about(process),
          type: 'call/not-gone',
          detail: { code, reason: message },
        })
      })
      .finally(() => {
        this.#running.delete(process)
        this.#ending.delete(process)
        this.#stoppedFor.delete(process)
        this.#options.ports.governor.forget(process)
      })
  }

  /** Stops all of them. */
  async stop(reason: string): Promise<void> {
    const { name } = this.#options.server
    // A call in flight has the ladder's time for its answer; one that was not sent has none coming.
    for (const id of this.#running.keys()) this.#stoppedFor.set(id, reason)
    for (const client of this.#meeting.values()) client.close(unavailable(name, reason))
    const ends = await Promise.allSettled(
      [...this.#running.values()].map((instance) => instance.stop(reason)),
    )
    for (const end of ends) if (end.status === 'rejected') throw unavailable(name, String(end.reason))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('Sallyport is stopping')
  }

  /** Whether it is known that a call's process lists what was admitted; its tools alone, for nothing else is asked of it. */
  #surveyOf(client: McpClient, instance: InstanceId, signal: AbortSignal): Survey {
    const { server, toolLimit, ports } = this.#options
    const { governor } = ports
    const options = { timeoutMs: server.timeouts.initializeMs, signal, late: noList(server) }
    const request = (method: string, params: string) => client.request(method, client.dress(params), options)
    const ask = async (): Promise<void> => {
      const tools = await readTools(request, toolLimit)
      const saidVersion = client.introduction.version
      await governor.observe({ server, instance, tools, saidVersion, rest: null })
      if (!this.#running.has(instance)) governor.forget(instance) // its end may have come before that look
    }
    return new Survey({ server, ask })
  }

  #about(instance: InstanceId): {
    readonly server: string
    readonly instance: InstanceId
    readonly principal: string
  } {
    return { server: this.#options.server.name, instance, principal: this.#options.principal }
  }
}

/** How a process was lost that nobody can speak with, though it has not ended yet; null where the error is not about that. */
const lostWith = ({ code, message, details }: SallyportError): Lost | null =>
  code === 'ERR_SERVER_UNAVAILABLE' || code === 'ERR_INITIALIZE_TIMEOUT'
    ? { reason: String(details['reason'] ?? message), readyMs: null, retryable: true, exit: null }
    : null

/** What `next` comes to, in a turn in which nothing is left to compare. */
const inTurn = <T>(comparing: Comparing, next: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    onceCompared(comparing, () => void next().then(resolve, reject), reject)
  })
