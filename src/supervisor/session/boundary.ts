// The governed side of one session: what its server lists, the calls that are held, and the calls that were sent.
import type { SallyportError } from '../../errors.ts'
import { contained } from '../message/contained.ts'
import type { InstanceId, SessionId } from '../../lib/ids.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import { ascii, declined, errorLine } from '../message/answers.ts'
import type { Conversation, HostRequest } from '../lanes/conversation.ts'
import type { Response } from '../message/envelope.ts'
import { GovernedCalls } from '../governed/governed-calls.ts'
import { KeptLines } from '../governed/kept-lines.ts'
import { OwnProcesses } from '../governed/own-processes.ts'
import { OwnRequests } from '../client/own-requests.ts'
import { unavailable } from '../message/unavailable.ts'
import { soon } from '../../lib/deadline.ts'
import { SessionHolding } from '../lanes/holding.ts'
import type { Relay } from '../lanes/relay.ts'
import { lose, type SessionOptions } from './options.ts'
import { ReadLists } from './read-lists.ts'
import { SessionSurface } from './surface.ts'
import { SharedSurface } from './shared-surface.ts'
import type { Wire } from '../lanes/wire.ts'

export interface BoundaryOptions {
  readonly session: SessionId
  readonly options: SessionOptions
  readonly talk: Conversation
  readonly relay: () => Relay | null
  readonly instance: () => InstanceId | null
  /** Something waits for a server, and none was started */
  readonly wanted: () => void
  readonly note: (...note: [...Parameters<Wire['note']>, error?: SallyportError]) => void
  /** The session can't go on */
  readonly broken: (error: SallyportError) => void
}

/** What of a wire is the boundary's. */
type BoundaryWire = Pick<
  Wire,
  | 'questions'
  | 'note'
  | 'unreadable'
  | 'initialized'
  | 'listChanged'
  | 'hold'
  | 'takeBack'
  | 'cancelled'
  | 'own'
  | 'hears'
  | 'introduces'
  | 'shows'
  | 'offers'
  | 'isKnown'
  | 'taskSaid'
  | 'ownsTask'
  | 'declineTask'
  | 'confide'
  | 'holding'
>

/** How long the records of calls that are not sent may take, for their hosts to be told, ms */
const refusedMs = 2000

export class SessionBoundary {
  readonly #options: BoundaryOptions
  readonly #calls: GovernedCalls
  readonly #requests: OwnRequests
  readonly #surface: SessionSurface | SharedSurface
  readonly #own: OwnProcesses
  readonly #lists: ReadLists
  readonly #unwatch: () => void
  /** What is kept for its host */
  readonly holding = new SessionHolding()

  constructor(options: BoundaryOptions) {
    this.#options = options
    const { session, talk, relay, instance } = options
    const { server, caller, ports, toolLimit, logs } = options.options
    const { governor, gate } = ports
    const say = (line: string): void => relay()?.say(line)
    this.#requests = new OwnRequests(say, () => this.#surface.changed())
    const { shared } = options.options
    const surface =
      shared === null
        ? new SessionSurface({ server, governor, toolLimit, instance, talk, requests: this.#requests })
        : new SharedSurface(shared)
    this.#surface = surface
    const toHost = (line: string): void => relay()?.answer(line)
    this.#lists = new ReadLists({ talk, told: () => surface.told, toHost })
    this.#unwatch = governor.watch(server.name, () => this.#lists.changed())
    const { lost } = options.options
    this.#own = new OwnProcesses({ server, principal: caller.principal.id, toolLimit, ports, logs, lost })
    this.#calls = new GovernedCalls({
      own: this.#own,
      server,
      session,
      principal: caller.principal,
      gate,
      governor,
      talk,
      kept: new KeptLines(4 * server.output.lineBytes, this.holding),
      holding: this.holding,
      note: options.note,
      unsubscribe: this.#unsubscribe,
      person: {
        server,
        questions: options.options.questions,
        note: options.note,
        declineTask: this.#declineTask,
      },
      tasks: options.options.tasks,
      surface: () => surface.known(),
      wanted: () => this.#want(),
      instance,
      send: (line) => relay()?.admit(line),
      say,
      toHost: (line, answers) => relay()?.answer(line, answers),
      look: () => void relay()?.stillReads(), // never rejects; a host that is gone is heard of by its stream
      broken: options.broken,
    })
  }

  /** The processes of calls that have their own. */
  views(): readonly InstanceView[] {
    return this.#own.views()
  }

  /**
   * What is held is not sent: resolves when the host was told so, and nothing is left of processes that calls have. A host that
   * waits for its handshake waits no longer; what else is in flight may be answered until `end`.
   */
  async stop(reason: string, isMeeting: boolean): Promise<void> {
    const { talk, options } = this.#options
    const error = unavailable(options.server.name, reason)
    this.#surface.end(error)
    this.#requests.fail(error)
    for (const patience of talk.held.values()) patience.end(error)
    if (isMeeting) this.lost(error)
    const stopped = this.#own.stop(reason).catch(() => undefined) // the instance's own event tells of what stays
    await Promise.all([soon(this.#calls.decided(), refusedMs), stopped])
  }

  /** True while a call waits that is not sent. */
  get isWaiting(): boolean {
    return this.#calls.isWaiting
  }

  /** True while the server has a request of the host's that it can answer without it. */
  get isAwaited(): boolean {
    const { talk } = this.#options
    return !talk.isAsking && talk.hostRequests.values().some(isAnswered)
  }

  /** Ends what lasts where policy does not let it go on. */
  review(): void {
    contained(() => this.#calls.subscriptions.review(), this.#options.broken)
  }

  /** The host is gone: what waits for an operator is not sent. */
  leave(reason: SallyportError): void {
    for (const patience of this.#options.talk.held.values()) patience.leave(reason)
  }

  /** Resolves when whatever waits by now was sent or refused. */
  decided(): Promise<void> {
    return this.#calls.decided()
  }

  /** The boundary's part of the session's wire. */
  wire(): BoundaryWire {
    const { options, note } = this.#options
    const { server, ports, questions, caller } = options
    return {
      questions,
      note,
      holding: this.holding,
      unreadable: (request, error) => this.#unreadable(request, error),
      initialized: () => this.#surface.begin(),
      listChanged: () => this.#surface.changed(),
      hold: (held) => this.#calls.hold(held),
      takeBack: (id) => this.#calls.takeBack(id),
      cancelled: (...request) => this.#calls.cancelled(...request),
      own: (response) => this.#requests.settle(response),
      hears: (said) => {
        if (this.#requests.hears(said) || this.#calls.subscriptions.silences(said)) return true
        this.#lists.hears(said)
        return false
      },
      taskSaid: (params) => this.#calls.tasks.said(params),
      declineTask: this.#declineTask,
      ownsTask: (id) => this.#calls.tasks.owns(id),
      confide: (values) => ports.governor.confide(server.name, caller.principal.id, values),
      introduces: (instructions) => ports.governor.introduces(server, this.#options.instance(), instructions),
      shows: (tool) => ports.governor.shows(server, this.#options.instance(), tool),
      isKnown: (...entry) => this.#surface.isKnown(...entry),
      offers: (method) => ports.governor.offers(server, this.#options.instance(), method),
    }
  }

  /** A server that answers the handshake with what nobody can read is of no use: its session ends, once the host was told. */
  #unreadable(request: HostRequest, error: SallyportError): void {
    this.#calls.unreadable(request, error)
    if (request.route !== 'handshake') return
    lose(this.#options.options, { reason: error.message, readyMs: null, retryable: true, exit: null })
    queueMicrotask(() => this.#options.broken(error))
  }

  /** The server takes requests from now on. */
  ready(): void {
    const { server, ports } = this.#options.options
    ports.pools.prepare(server.name)
    this.#surface.ready()
  }

  /** The server answered a request of the host's. */
  answered(request: HostRequest, response: Response): void {
    this.#calls.answered(request, response)
    if (response.result !== null) this.#lists.answered(request.method)
    if (request.route === 'list') this.#surface.listed(request.method, response)
    if (request.route === 'handshake' || request.route === 'probe') this.#surface.introduce(response)
  }

  /** What waits is not sent, and what was sent and not answered is lost: a host that still listens is told. */
  lost(error: SallyportError): void {
    const { talk, relay } = this.#options
    for (const { id } of talk.giveUp()) relay()?.answer(errorLine(id, error))
    this.#surface.fail(error)
    this.#requests.fail(error)
    this.#own.refuseUnsent(error)
    this.#calls.end(error)
  }

  /** The same, and no call is sent from here on. */
  end(error: SallyportError, instances: readonly { readonly id: InstanceId }[]): void {
    const { note, options } = this.#options
    this.#unwatch()
    contained(
      () => this.lost(error),
      (bug) => note('session/failed', { code: bug.code, reason: bug.message }, bug), // it ends all the same
    )
    for (const { id } of instances) options.ports.governor.forget(id)
  }

  readonly #declineTask: Wire['declineTask'] = (taskId, names) => {
    const inputResponses = Object.fromEntries(names.map((name) => [name, declined]))
    const update = this.#requests.request('tasks/update', ascii({ taskId, inputResponses }), true)
    update.catch(() => undefined) // the server goes, and the task with it
  }

  readonly #unsubscribe = (uri: string): void => {
    const { talk } = this.#options
    const end = this.#requests.request('resources/unsubscribe', ascii({ uri }), !talk.isLegacy)
    end.catch(() => undefined) // the server goes, and the subscription with it
  }

  /** What waits for a server to be looked at makes one start, as what waits to be said does. */
  #want(): void {
    if (this.#surface.isWanted) this.#options.wanted()
  }
}

/** A subscription is answered when it ends. */
const isAnswered = ({ route }: HostRequest): boolean => route !== 'listen'
