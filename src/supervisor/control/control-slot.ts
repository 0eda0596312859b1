// The instance that serves one principal's control calls to one server: started when needed, restarted when lost.
import { catalogue, SallyportError } from '../../errors.ts'
import type { InstanceId } from '../../lib/ids.ts'
import { soon, unlessAborted } from '../../lib/deadline.ts'
import { Due } from '../../lib/due.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { Instance } from '../instance/instance.ts'
import type { Aftermath, Lost } from '../instance/life.ts'
import type { LogRing } from '../instance/log-ring.ts'
import type { RequestOptions } from '../client/options.ts'
import type { Compared } from '../client/surface.ts'
import { Notes } from '../instance/notes.ts'
import { OwnProcesses } from '../governed/own-processes.ts'
import type { Ports, Running, ToolCall } from '../ports.ts'
import { RestartSchedule } from '../instance/restart.ts'
import type { SharedDoor } from '../shared/serving.ts'
import type { Guest, Seat } from '../shared/seat.ts'
import type { Generations } from './generations.ts'
import { Idle } from './idle.ts'
import { type Connection, connectionTo, leave, type Line, lineOf } from './slot-connection.ts'
import type { ToolSurface } from '../client/tool-surface.ts'
import { unavailable, whyNot } from '../message/unavailable.ts'

export interface SlotOptions {
  readonly server: ServerSettings
  readonly principal: string
  readonly ports: Ports
  readonly logs: LogRing
  readonly generations: Generations
  /** Told of an end that nobody asked for; true when it makes a storm */
  readonly lost: (lost: Lost) => boolean
}

type Waiting = Pick<RequestOptions, 'signal'>

type Asked = Pick<ToolCall, 'tool' | 'generation'>

const never = new AbortController().signal
const lastWordMs = 50 // how long a process that ends may take to be gone, from its last output on

/** One instance at a time. A call finds it ready, starts it, waits for a start that is under way, or fails at once. */
export class ControlSlot implements AsyncDisposable, SharedDoor {
  readonly #options: SlotOptions
  readonly #instance: Instance
  readonly #schedule: RestartSchedule
  readonly #notes: Notes
  readonly #own: OwnProcesses
  readonly #idle: Idle
  #connection: Connection | null = null
  /** To the last process that ended by itself: what it said before is heard until another is left, or it is cut */
  #ended: Connection | null = null
  /** To a process that has not answered the handshake, or not said what it lists */
  #meeting: Connection | null = null
  #toldEarly = 0 // changes, before it was ready
  #starting: Promise<Connection> | null = null
  #retry: Due | undefined

  constructor(options: SlotOptions) {
    this.#options = options
    const { server, principal, ports, logs } = options
    const { launch, emit, random } = ports
    this.#notes = new Notes(emit, { server: server.name, principal })
    this.#schedule = new RestartSchedule(server.restart, random)
    this.#own = new OwnProcesses({ ...options, toolLimit: ports.settings.tools.perServer })
    this.#idle = new Idle({ idleMs: server.timeouts.idleMs, end: (reason) => this.#end(reason) })
    const afterLoss = (lost: Lost): Aftermath => this.#afterLoss(lost)
    const purpose = server.instance === 'shared' ? 'shared' : 'control'
    this.#instance = new Instance({ server, purpose, principal, launch, emit, logs, afterLoss })
  }

  get instance(): Instance {
    return this.#instance
  }

  get id(): InstanceId {
    return this.#instance.id
  }

  get compared(): Compared | null {
    return this.#connection?.surface.compared ?? null
  }

  view(): InstanceView {
    const sessions =
      this.#options.server.instance === 'shared' ? (this.#connection?.board?.guests ?? 0) : null
    return { ...this.#instance.view(), sessions }
  }

  /** The same, and the processes of calls that have their own. */
  views(): readonly InstanceView[] {
    return [this.view(), ...this.#own.views()]
  }

  /** The tools, or null while the server is not connected. */
  get tools(): ToolSurface | null {
    return this.#connection?.surface ?? null
  }

  /** Waits for a start under way, however it ends. */
  async settled({ signal }: Waiting): Promise<void> {
    if (this.#starting !== null) await unlessAborted(this.#starting, signal).catch(() => null)
  }

  /** Starts in so many words: whatever made it give up is forgotten. */
  async start({ signal }: Waiting): Promise<void> {
    const { state } = this.#instance
    const hasGivenUp = state === 'backoff' || state === 'failed' || state === 'needs-auth'
    if (hasGivenUp || state === 'stopped') this.#schedule.reset()
    if (hasGivenUp) {
      this.#retry?.cancel()
      await unlessAborted(this.#begin(), signal)
    } else await this.#connected(signal)
  }

  /** The way to the server, once it is known what it lists by now. Whoever finds it down fails at once; nothing is repeated. */
  async line({ tool, generation }: Asked, waiting: Waiting): Promise<Line> {
    const connection = await this.#connected(waiting.signal)
    const { surface } = connection
    this.#idle.hold() // for whoever waits for the lists, too
    try {
      const known = surface.known()
      if (known !== null) await unlessAborted(known, waiting.signal)
      const { generations, server } = this.#options
      generations.requireSeen(server.name, surface.find(tool)?.since ?? 0, { tool, generation })
    } catch (error) {
      this.#letGo()
      throw error
    }
    return lineOf(connection, {
      instance: this.#instance.id,
      own: this.#own,
      letGo: () => this.#letGo(),
    })
  }

  async join(guest: Guest): Promise<Seat> {
    const { board } = await this.#connected(never)
    if (board === null) throw new SallyportError('ERR_INTERNAL', 'a session was to share what is not shared')
    this.#idle.hold()
    return board.seat(guest, () => this.#letGo())
  }

  known(): Promise<void> | null {
    return this.#connection?.surface.known() ?? null
  }

  /** Runs the stop ladder; a restart that was to come does not. */
  stop(reason: string): Promise<void> {
    this.#idle.stopped(reason)
    return this.#end(reason)
  }

  /** Whoever waits for an answer of it hears why there is none. */
  readonly cut = (reason: string): void => this.#leave(reason)()

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('Sallyport is stopping')
  }

  /** What was sent may be answered until the process ends, by the ladder; what was not is refused at once. */
  async #end(reason: string): Promise<void> {
    this.#retry?.cancel()
    const close = this.#leave(reason)
    await Promise.all([this.#instance.stop(reason), this.#own.stop(reason)]).finally(close)
  }

  async #connected(signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted() // nothing is started for whoever is gone
    const { name } = this.#options.server
    // Nobody but Sallyport wanted it to end: that costs a call the time that it takes, and not its answer.
    const resting = this.#idle.ending()
    if (resting !== null) {
      const stoppedFor = await unlessAborted(resting, signal)
      if (stoppedFor !== null) throw unavailable(name, stoppedFor)
    }
    const { state } = this.#instance
    if (this.#connection !== null && state === 'ready') {
      const { closed } = this.#connection.client
      if (closed !== null) throw closed
      return this.#connection
    }
    if (this.#starting !== null) return unlessAborted(this.#starting, signal)
    // A source that failed may have been mended since: only a start reads it again.
    if (state === 'stopped' || state === 'needs-auth') return unlessAborted(this.#begin(), signal)
    throw unavailable(name, whyNot(name, this.#instance.view()))
  }

  /** The start goes on when the one who waits for it does not. */
  #begin(): Promise<Connection> {
    const starting = this.#connect().finally(() => {
      if (this.#starting === starting) this.#starting = null
    })
    this.#starting = starting
    starting.catch(() => undefined)
    return starting
  }

  /** Launch, handshake, tool list: only then is it ready. */
  async #connect(): Promise<Connection> {
    const { server, ports, generations } = this.#options
    const process = await this.#instance.start()
    const instance = this.#instance.id
    const connection = connectionTo({
      server,
      ports,
      process,
      instance,
      nextGeneration: () => generations.next(),
      listChanged: () => this.changed(),
      note: (...note) => this.#note(...note),
    })
    const { client, surface } = connection
    const options = { timeoutMs: server.timeouts.initializeMs, signal: never }
    this.#meeting = connection
    try {
      await client.handshake(options)
      client.subscribe()
      this.#toldEarly = 0 // what it said before is in the lists that are asked for next
      // Without a record nothing is called, but the server may run: the next call looks again.
      await surface.fetch(options).catch(unlessUnrecorded)
      if (this.#instance.state !== 'starting')
        throw client.closed ?? unavailable(server.name, this.#instance.reason)
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      client.close(error)
      connection.gone.abort(error)
      // Whoever waits is told at once; what follows is decided at the ladder's end.
      void this.#abandon(error, catalogue[error.code].retryable)
      throw error
    }
    this.#meeting = null
    this.#instance.ready()
    ports.pools.prepare(server.name)
    this.#connection = connection
    if (this.#toldEarly > 0) this.changed()
    this.#idle.begin()
    void client.broken.then((error) => this.#outlived(process, instance, error))
    return connection
  }

  /** A process that nobody can speak with is of no use; one that is just ending says itself how. */
  async #outlived(process: Running, instance: InstanceId, error: SallyportError): Promise<void> {
    if ((await soon(process.ended, lastWordMs)) !== null || this.#instance.id !== instance) return
    await this.#abandon(error, true)
  }

  /** Whoever is told of it next hears the reason alone: which server it is stands before it. */
  async #abandon({ message, details }: SallyportError, retryable: boolean): Promise<void> {
    await this.#instance.abandon(String(details['reason'] ?? message), retryable).catch(() => undefined)
  }

  /** The server says that what it lists has changed. */
  changed(): void {
    const surface = this.#connection?.surface
    if (surface === undefined) return void this.#toldEarly++
    surface.changed({ timeoutMs: this.#options.server.timeouts.callMs, signal: never }, (outcome) =>
      this.#note('tools/changed', 'error' in outcome ? { reason: outcome.error.message } : outcome),
    )
  }

  /** A call that waits for a person, or runs in a process of its own, keeps it up too. */
  #letGo(): void {
    this.#idle.letGo()
    if (this.#connection !== null) this.#idle.begin()
  }

  /** Nothing is sent to it any more; what was may be answered until the returned function is called. */
  #leave(reason: string, hasEnded = false): () => void {
    this.#options.ports.governor.forget(this.#instance.id)
    const connection = this.#connection
    this.#connection = null
    const gone = unavailable(this.#options.server.name, reason)
    this.#meeting?.client.close(gone)
    this.#ended?.client.close(gone)
    this.#ended = hasEnded ? connection : null
    return connection === null ? () => undefined : leave(connection, gone, reason, hasEnded)
  }

  #afterLoss(lost: Lost): Aftermath {
    this.#idle.lost()
    this.#leave(lost.reason, lost.exit !== null)()
    if (lost.needsAuth === true) return { event: 'need-auth' }
    if (this.#options.lost(lost)) return { event: 'quarantine' }
    const verdict = this.#schedule.after(lost)
    if (verdict.action === 'give-up') return { event: 'fail' }
    this.#retry = new Due(verdict.delayMs, () => void this.#begin())
    return { event: 'back-off', next: this.#retry }
  }

  #note(type: string, detail: Readonly<Record<string, unknown>>, error?: SallyportError): void {
    this.#notes.add(type, this.#instance.id, detail, error)
  }
}

function unlessUnrecorded(thrown: unknown): void {
  if (SallyportError.from(thrown).code !== 'ERR_JOURNAL') throw thrown
}
