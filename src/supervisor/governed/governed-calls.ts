// The governed requests of one session: held until they may be sent, followed until they are answered.
import { SallyportError } from '../../errors.ts'
import { BriefMap } from '../../lib/brief-map.ts'
import { nowMs } from '../../lib/clock.ts'
import { bugIn, contained } from '../message/contained.ts'
import type { InstanceId } from '../../lib/ids.ts'
import { Together, wholeTurnMs } from '../../lib/together.ts'
import type { Admission, Outcome } from '../../schema/governor.ts'
import { Alarm } from './alarm.ts'
import type { GovernedCallsOptions, Sent } from './options.ts'
import { cancelledLine, errorLine } from '../message/answers.ts'
import { Asking } from './asking.ts'
import { type HostRequest, isElsewhere, openElsewhere } from '../lanes/conversation.ts'
import { lineWithCredentials } from '../message/credential-meta.ts'
import type { Response } from '../message/envelope.ts'
import { denialOf } from '../message/governed-request.ts'
import { evidenceOf, isTimed } from '../lanes/held.ts'
import type { MessageId } from '../message/message-id.ts'
import { taskRefused } from './own-task.ts'
import { ownAnswer } from './own-answer.ts'
import { proposalOf } from './proposal.ts'
import { refusalLine } from './refusal-line.ts'
import { Patience } from '../lanes/patience.ts'
import { SecretInResult } from '../message/secret-in-result.ts'
import { Subscriptions } from '../lanes/subscriptions.ts'
import { type Ending, taskBegun, taskIn, Tasks } from '../lanes/tasks.ts'
import { kindOfListed } from '../message/tool-result.ts'
import { noAnswer } from '../message/unavailable.ts'
import { utf8Of } from '../message/utf8.ts'
import type { Ask, Held } from '../lanes/wire.ts'

/** Of all sessions: rules look at what hosts chose, and whoever waits for something else has turns between. */
const starting = new Together({ turnMs: wholeTurnMs })

/** Each request is admitted, sent and settled once, or answered and never sent. */
export class GovernedCalls {
  readonly #options: GovernedCallsOptions
  readonly #sent = new BriefMap<Sent>()
  readonly #alarm: Alarm
  /** Calls in processes of their own */
  readonly #own = new Map<string, AbortController>()
  readonly #tasks: Tasks
  readonly subscriptions: Subscriptions
  readonly #ending: Together
  #lastEnded: Sent | null = null

  constructor(options: GovernedCallsOptions) {
    this.#options = options
    this.#ending = new Together({ failed: (thrown) => options.broken(bugIn(thrown)) })
    this.#alarm = new Alarm(options.talk, (now) => {
      let next = Infinity
      contained(() => (next = this.#expire(now)), options.broken)
      return next
    })
    this.#tasks = new Tasks(options.tasks)
    this.subscriptions = new Subscriptions({ ...options, withdraw: this.#withdraw })
  }

  /** With those that the server's answers so far have begun and ended. */
  get tasks(): Tasks {
    this.#ending.now()
    return this.#tasks
  }

  /** True while something waits that a server would have to be started for. */
  get isWaiting(): boolean {
    return this.#options.talk.held.size > 0
  }

  hold(held: Held): void {
    const { governor, talk, kept, broken } = this.#options
    const patience = new Patience(held.progressToken, this.#options)
    talk.held.set(held.request.id.key, patience)
    const asking = new Asking(held, patience, governor, this.#ask, this.#told)
    const tooMuch = kept.wait(held.line)
    if (tooMuch !== null) return asking.refused(tooMuch)
    const start = (): void => asking.start(() => this.#obstacle(held, patience))
    starting.add(() => contained(start, broken), this)
  }

  /** Resolves when whatever is held by now was sent or refused. */
  async decided(): Promise<void> {
    await Promise.all(this.#options.talk.held.values().map((patience) => patience.over()))
  }

  /** The host waits no longer. True when the request was still held: then nothing is sent, and nothing answered. */
  takeBack(id: MessageId): boolean {
    const patience = this.#options.talk.held.take(id.key)
    if (patience === undefined) return false
    patience.end(new SallyportError('ERR_CALL_CANCELLED', 'the host took the call back'))
    return true
  }

  /** The host waits no longer for what was sent. */
  cancelled({ wireId }: HostRequest, by: 'host' | 'server'): void {
    this.#settle(wireId.key, 'cancelled', null, `cancelled by the ${by}`)
  }

  /** The server answered. */
  answered(request: HostRequest, response: Response): void {
    const sent = this.#take(request.wireId.key)
    if (sent !== undefined) this.#ending.add(() => this.#answeredOnce(sent, request, response))
  }

  /** It is in no list any more: where a bug keeps it from its end, it has this one. */
  #answeredOnce(sent: Sent, request: HostRequest, response: Response): void {
    try {
      this.#answered(sent, request, response)
    } catch (thrown) {
      if (this.#lastEnded !== sent) this.#end(sent, 'lost', null, bugIn(thrown).message)
      throw thrown
    }
  }

  /** An answer that begins a task ends no call, but its turn: a task may take a day. */
  #answered(sent: Sent, { route, method }: HostRequest, { text, result, error }: Response): void {
    const bytes = result === null ? utf8Of(text, error) : evidenceOf(text, result)
    const isCall = route === 'call' && result !== null && bytes !== null
    const task = isCall ? taskBegun(bytes, sent.asksTask, this.#options.talk.isLegacy) : null
    if (task !== null && bytes !== null) {
      for (const { turn } of sent.admissions) turn.end()
      return this.#tasks.begin(task, bytes, (...end) => this.#end(sent, ...end))
    }
    const kind = result === null || bytes === null ? 'error' : kindOfListed(bytes, result)
    this.#end(sent, kind, bytes, null)
    if (method.startsWith('tasks/')) this.#tasks.answered(method, sent.taskId, kind, bytes ?? '{}')
  }

  /** The server answered, and nobody can read what. */
  unreadable({ wireId }: HostRequest, error: SallyportError): void {
    const bytes = error instanceof SecretInResult ? error.redacted : null
    this.#settle(wireId.key, 'error', bytes, error.message)
  }

  /** The server is gone, or the session ends: nothing held is sent, and nobody knows how what was sent ended. */
  end(error: SallyportError): void {
    for (const key of this.#sent.keys()) this.#settle(key, 'lost', null, error.message)
    this.tasks.end(error.message)
    for (const patience of this.#options.talk.held.values()) patience.end(error)
    this.#alarm.off()
  }

  readonly #told = (asking: Asking, refusal: SallyportError | null): void =>
    contained(
      () => this.#decided(asking, refusal),
      (bug) => {
        const { admissions, held } = asking
        const isFollowed = this.#sent.has(openedAs(held, admissions).wireId.key)
        if (!isFollowed)
          this.#settleAll(admissions, { kind: 'lost', durationMs: 0, bytes: null, detail: bug.message })
        this.#options.broken(bug)
      },
    )

  /** Sends what was admitted, in this turn; or answers it, where the host still waits. */
  #decided({ held, patience, admissions }: Asking, refusal: SallyportError | null): void {
    const [{ talk, toHost, kept }, { request, line }] = [this.#options, held]
    patience.close()
    const isWanted = talk.held.get(request.id.key) === patience
    if (isWanted) talk.held.delete(request.id.key)
    const error = refusal ?? patience.reason
    if (error === null && isWanted) return this.#send(held, admissions)
    const detail = 'it was never sent'
    kept.drop(line)
    this.#settleAll(admissions, { kind: 'cancelled', durationMs: 0, bytes: null, detail })
    if (isWanted && error !== null) toHost(refusalLine(held, error, talk.isLegacy))
  }

  #send(held: Held, admissions: readonly Admission[]): void {
    const { asks, line, asksTask } = held
    const request = openedAs(held, admissions)
    const { talk, send, server } = this.#options
    talk.open(request)
    const taskId = taskIn(asks[0]) // whose `tasks/result` waits for it
    const limitMs = Math.max(server.timeouts.callMs, taskId === undefined ? 0 : this.tasks.leftMs(taskId))
    const sentAt = nowMs()
    const dueAt = isTimed(held) ? talk.now(sentAt) + limitMs : Infinity
    this.#options.kept.send(request, line)
    const subscribing = this.subscriptions.sent(held, admissions)
    this.#sent.set(request.wireId.key, { admissions, sentAt, dueAt, asksTask, taskId, subscribing })
    this.#alarm.by(dueAt)
    const [first] = admissions
    if (first !== undefined && first.process !== null)
      return void this.#sendToOwn(
        request,
        { ...first, process: first.process },
        asks[0]?.bytes ?? '{}',
      ).catch((thrown: unknown) => this.#options.broken(bugIn(thrown)))
    const values = first?.secrets?.meta ?? null
    send(values === null ? line : lineWithCredentials(line, values))
  }

  /** The call has a process of its own: its answer, progress and logs reach the host as if the session's had said them. */
  async #sendToOwn(
    request: HostRequest,
    admission: Admission & { readonly process: InstanceId },
    params: string,
  ): Promise<void> {
    const { own, talk, person, server, toHost } = this.#options
    const { key } = request.wireId
    const controller = new AbortController()
    this.#own.set(key, controller)
    const end = await ownAnswer(own, person, request, admission, params, {
      gate: this.#options.gate,
      declared: talk.declared,
      signal: controller.signal,
      timeoutMs: server.timeouts.callMs,
      introduced: talk.isLegacy ? talk.introduced : false,
      heard: (line) => (this.#own.get(key) === controller ? toHost(line) : undefined),
    })
    if (this.#own.get(key) !== controller) return // the host was told, or waits no longer
    this.#own.delete(key) // it has answered: nothing of it is called off
    talk.settle(key)
    this.#settle(key, end.kind, end.bytes, end.detail)
    toHost(end.line, request.id)
  }

  /** Why the request can't be sent whatever policy says; waits until what the server lists is known. */
  #obstacle(held: Held, patience: Patience): Promise<SallyportError | null> | SallyportError | null {
    const { gate, server, talk, wanted } = this.#options
    if (patience.reason !== null) return patience.reason
    const { asks } = held
    const refused = denialOf(gate, server, asks) ?? this.tasks.obstacle(asks, server.name)
    const full = refused ?? this.subscriptions.obstacle(held)
    const surface = full ?? taskRefused(server, held, talk.isLegacy) ?? this.#options.surface()
    wanted()
    if (surface === null || surface instanceof SallyportError) return surface
    return surface.then(
      () => patience.reason,
      (thrown: unknown) => patience.reason ?? SallyportError.from(thrown),
    )
  }

  readonly #ask = (ask: Ask, asking: Asking): void =>
    this.#options.governor.admitTo(proposalOf(ask, asking, this.#options), asking.patience, asking)

  /** Ends what is due by now; returns when the next is. */
  #expire(now: number): number {
    let next = Infinity
    for (const key of this.#sent.keys()) {
      const dueAt = this.#sent.get(key)?.dueAt ?? Infinity
      if (dueAt > now) next = Math.min(next, dueAt)
      else this.#tooLate(key)
    }
    return next
  }

  /** The server did not answer in time: it is told to stop, and the host need not wait (MP-FH-004). */
  #tooLate(key: string): void {
    const { server } = this.#options
    const error = noAnswer(server, this.#sent.get(key)?.admissions[0]?.subject ?? 'a request')
    this.#giveUp(key, 'timeout', error, `no answer within ${server.timeouts.callMs} ms`)
  }

  /** What lasts may not go on: the server is told so, and the host. */
  readonly #withdraw = ({ wireId }: HostRequest, error: SallyportError): void =>
    this.#giveUp(wireId.key, 'cancelled', error, 'it may not go on')

  #giveUp(key: string, kind: Outcome['kind'], error: SallyportError, told: string): void {
    const { talk, say, toHost } = this.#options
    const request = talk.expire(key)
    if (request === null) return
    this.#settle(key, kind, null, error.message)
    if (!isElsewhere(request)) say(cancelledLine(request.wireId, told))
    toHost(errorLine(request.id, error))
  }

  #settle(key: string, ...ending: Ending): void {
    const sent = this.#take(key)
    if (sent !== undefined) this.#end(sent, ...ending)
  }

  /** The call is over, and with it the process of its own; the host may use the id again. */
  #take(key: string): Sent | undefined {
    if (this.#own.size > 0) {
      this.#own.get(key)?.abort(new SallyportError('ERR_CALL_CANCELLED', 'the call is over'))
      this.#own.delete(key)
    }
    this.#options.kept.answer(key)
    return this.#sent.take(key)
  }

  #end(sent: Sent, ...[kind, bytes, detail, isState]: Ending): void {
    const { admissions, sentAt, subscribing } = sent
    this.#lastEnded = sent
    const durationMs = Math.round((nowMs() - sentAt) * 1000) / 1000
    const outcome = { kind, durationMs, bytes, detail }
    this.#settleAll(admissions, isState === undefined ? outcome : { ...outcome, isState })
    if (subscribing !== null) this.subscriptions.over(subscribing, kind)
  }

  #settleAll(admissions: readonly Admission[], outcome: Outcome): void {
    for (const admission of admissions) this.#options.governor.settle(admission, outcome)
  }
}

/** As it is open once it is sent: to a call that has a process of its own no other process can give the answer. */
const openedAs = ({ request }: Held, [first]: readonly Admission[]): HostRequest =>
  (first?.process ?? null) === null ? request : openElsewhere(request)
