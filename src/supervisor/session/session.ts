// An attached session: one host, and the process that it would have started itself.
import type { Duplex } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { whenLate, whenSpent } from '../../lib/deadline.ts'
import { newSessionId } from '../../lib/ids.ts'
import type { InstanceView } from '../../rpc/protocol.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import { boundless } from '../../schema/room.ts'
import { unknownMethodLine } from '../message/answers.ts'
import { Conversation, type HostRequest } from '../lanes/conversation.ts'
import type { Response } from '../message/envelope.ts'
import { Notes } from '../instance/notes.ts'
import type { SessionEnd } from '../ports.ts'
import { closeStream, hostLeft, sessionEnd } from '../instance/process-end.ts'
import { isLegacyAnswer, isModernAnswer, type Probe } from '../message/probe.ts'
import { Relay } from '../lanes/relay.ts'
import { afterLoss, type Phase, type SessionOptions, unanswered } from './options.ts'
import { SessionBoundary } from './boundary.ts'
import { SessionInstances } from './instances.ts'
import { lastAnswers } from './last-answers.ts'
import type { Serving } from '../shared/serving.ts'
import { mostShared } from '../shared/refusal.ts'
import { unavailable } from '../message/unavailable.ts'

/** Starts its instance at the host's first message, or where told so at its end without one; ends when either side does. Of its own nothing is restarted: hosts do that. */
export class Session implements AsyncDisposable {
  readonly id = newSessionId()
  readonly #options: SessionOptions
  readonly #talk: Conversation
  readonly #notes: Notes
  readonly #ended = Promise.withResolvers<SessionEnd>()
  readonly #instances: SessionInstances
  #phase: Phase = 'idle'
  #relay: Relay | null = null
  #host: Duplex | null = null
  #inTime = (): void => undefined
  #probe: Probe | null = null
  #left: typeof hostLeft | null = null
  readonly #boundary: SessionBoundary

  constructor(options: SessionOptions) {
    this.#options = options
    this.#talk = new Conversation(options.shared === null ? undefined : mostShared)
    this.#notes = new Notes(options.ports.emit, { server: options.server.name, principal: this.principal })
    this.#boundary = new SessionBoundary({
      session: this.id,
      options,
      talk: this.#talk,
      relay: () => this.#relay,
      instance: () => this.#instances.serving?.id ?? null,
      wanted: () => this.#wanted(),
      note: (...note) => this.#note(...note),
      broken: (error) => this.#fail(error),
    })
    const guest = { broken: (error: SallyportError) => this.#fail(error), holding: this.#boundary.holding }
    this.#instances = new SessionInstances(options, (type, detail) => this.#note(type, detail), guest)
  }

  get principal(): string {
    return this.#options.caller.principal.id
  }

  /** Resolves when the host's stream is closed and nothing is left of its processes. Never rejects. */
  get ended(): Promise<SessionEnd> {
    return this.#ended.promise
  }

  views(): readonly InstanceView[] {
    return [...this.#instances.views(), ...this.#boundary.views()]
  }

  /** Hands over the host's stream for good; `head` is what was read of it before, `room` is for what is kept. */
  take(host: Duplex, head: Buffer, room = boundless): void {
    if (this.#phase !== 'idle') return void host.destroy()
    this.#host = host
    const { server, ports } = this.#options
    this.#relay = new Relay(
      host,
      {
        server,
        gate: ports.gate,
        talk: this.#talk,
        initializing: () => this.#initializing(),
        probing: (probe) => this.#probing(probe),
        answered: (request, response) => this.#answered(request, response),
        ...this.#boundary.wire(),
      },
      {
        wanted: () => this.#wanted(),
        hostEnded: () => void this.#hostEnded(),
        serverEnded: (process) => this.#serverEnded(process),
        broken: (error) => this.#fail(error),
      },
    )
    this.#relay.open(head, room)
  }

  /** Ends the session; resolves with how it ended. Idempotent. Fails where there is no proof of that, though it may come. */
  stop(reason: string): Promise<SessionEnd> {
    void this.#end(reason, null)
    return Promise.race([this.ended, this.#instances.unproven])
  }

  /** Ends what lasts of it where policy does not let it go on. */
  readonly review = (): void => this.#boundary.review()

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('Sallyport is stopping')
  }

  #wanted(): void {
    if (this.#phase !== 'idle') return
    if (this.#probe !== null) return void this.#startProbe(this.#probe)
    void this.#start()
  }

  /** Launches the session's instance and gives it what the host said. */
  async #start(): Promise<void> {
    this.#phase = 'starting'
    this.#relay?.pauseHost()
    const instance = this.#instances.add((lost) => afterLoss(this.#options, lost, this.#left !== null))
    this.#instances.serving = instance
    try {
      const process = await this.#instances.start(instance)
      if (this.#phase !== 'starting' || this.#instances.serving !== instance)
        return void process.stdout.resume()
      this.#phase = 'running'
      this.#watch(instance, process)
      this.#relay?.connect(process, { muted: false, flush: true })
      this.#awaitHandshake(instance)
      if (this.#left !== null) void this.#hostEnded()
    } catch (thrown) {
      if (this.#instances.serving === instance) this.#lost(SallyportError.from(thrown))
    }
  }

  /** The first request's answer defines ready where it is a handshake; the later era has none, so started is ready. */
  #awaitHandshake(instance: Serving): void {
    const open = this.#options.shared === null ? this.#talk.hostRequests.values() : []
    if (!open.some(({ route }) => route === 'handshake' || route === 'probe')) return this.#ready(instance)
    const { server } = this.#options
    this.#inTime = whenLate(server.timeouts.initializeMs, () => this.#fail(unanswered(this.#options)))
  }

  #ready(instance: Serving): void {
    this.#inTime()
    this.#instances.ready(instance)
    this.#boundary.ready()
  }

  #answered(request: HostRequest, response: Response): boolean {
    this.#boundary.answered(request, response)
    if (request.route === 'probe' && this.#phase === 'probing') return this.#probed(request, response)
    if (this.#instances.serving?.state === 'starting') this.#ready(this.#instances.serving)
    return true
  }

  /** The host asks which era the server is of, and some of the old one die of the question. Returns whether it goes to a server at all. */
  #probing(probe: Probe): boolean {
    if (this.#phase !== 'idle') return true
    const known = this.#options.verdicts.get()
    if (known === 'legacy') return false
    if (known === null) this.#probe = probe
    return true
  }

  async #startProbe(probe: Probe): Promise<void> {
    this.#phase = 'probing'
    const instance = this.#instances.add(() => ({ event: 'ended' }))
    this.#instances.serving = instance
    const { initializeMs } = this.#options.server.timeouts
    this.#inTime = whenSpent(initializeMs, () => this.#goLegacy(instance, probe, 'no answer in time'))
    try {
      const process = await this.#instances.start(instance)
      if (this.#instances.serving !== instance) return void process.stdout.resume()
      this.#watch(instance, process)
      this.#relay?.connect(process, { muted: true, flush: false })
      this.#relay?.sayFirst()
    } catch (thrown) {
      if (this.#instances.serving === instance) this.#fail(SallyportError.from(thrown))
    }
  }

  #probed(request: HostRequest, response: Response): boolean {
    this.#inTime()
    const isKnown = this.#probe?.isWhole === true && isLegacyAnswer(response)
    this.#probe = null
    if (!isModernAnswer(response)) {
      this.#goLegacy(this.#instances.serving, null, 'it answered with an error', isKnown)
      return true
    }
    this.#options.verdicts.set('modern')
    this.#note('session/probed', { era: 'modern', method: request.method })
    this.#phase = 'running'
    if (this.#instances.serving !== null) this.#ready(this.#instances.serving)
    // After this turn, so that the answer is written before anything that was held behind it moves.
    queueMicrotask(() => this.#relay?.release())
    return true
  }

  /** The instance goes; the next message starts a fresh one. `probe` is answered where the server did not. */
  #goLegacy(instance: Serving | null, probe: Probe | null, reason: string, isKnown = false): void {
    if (this.#phase !== 'probing' || instance !== this.#instances.serving) return
    this.#inTime()
    if (isKnown) this.#options.verdicts.set('legacy')
    this.#note('session/probed', { era: 'legacy', reason })
    this.#retire(reason)
    if (probe !== null && this.#talk.settle(probe.id.key) !== null)
      this.#relay?.answer(unknownMethodLine(probe.id))
    if (this.#relay?.isHolding === true || this.#boundary.isWaiting) void this.#start()
  }

  /** The host does not wait for the probe any longer: it says `initialize`, which answers the question. */
  #initializing(): void {
    if (this.#phase === 'probing')
      this.#goLegacy(this.#instances.serving, this.#probe, 'the host went on with initialize')
  }

  #retire(reason: string): void {
    const instance = this.#instances.serving
    this.#instances.serving = null
    this.#probe = null
    this.#phase = 'idle'
    this.#relay?.disconnect()
    if (instance !== null) void this.#instances.stop(instance, reason)
  }

  /** What a host said before it closed its end still reaches its server, as it would without us; one that still reads is answered. */
  async #hostEnded(): Promise<void> {
    this.#left = hostLeft
    const isNew = this.#phase === 'idle'
    if (this.#options.runsUnasked && !this.#instances.isUsed) this.#wanted()
    if (this.#phase !== 'starting') await lastAnswers(this.#relay, this.#boundary, this.#options.server)
    if (this.#phase === 'starting' || (isNew && this.#phase !== 'idle')) return // the start goes on with it
    await this.#end(hostLeft, null)
  }

  #serverEnded(process: SandboxProcess): void {
    const instance = this.#instances.serving
    if (instance === null || this.#phase === 'ending' || this.#phase === 'ended') return
    if (this.#options.shared !== null) return // the end of the process is told apart
    if (this.#phase === 'probing') return this.#goLegacy(instance, this.#probe, 'it closed its output')
    void this.#instances.whyClosed(instance, process, () => this.#left).then((why) => this.#end(why, null))
  }

  /** Follows a process to its end: what it said last still reaches the host. */
  #watch(instance: Serving, process: SandboxProcess): void {
    void process.ended.then(() => {
      if (this.#instances.serving !== instance) return undefined
      if (this.#phase === 'probing') return this.#goLegacy(instance, this.#probe, 'it ended')
      if (this.#options.shared === null) return this.#end(this.#left, null)
      return this.#lost(unavailable(this.#options.server.name, instance.reason))
    })
  }

  /** What was its own is over; what it shared is another's to start again, and it can go on. */
  #lost(error: SallyportError): void {
    if (this.#options.shared === null) return this.#fail(error)
    if (this.#phase === 'ending' || this.#phase === 'ended') return
    this.#note('session/lost', { code: error.code, reason: error.message })
    this.#relay?.forget()
    this.#retire(error.message)
    this.#boundary.lost(error)
    if (this.#left !== null) void this.#hostEnded()
  }

  #fail(error: SallyportError): void {
    if (this.#phase === 'ending' || this.#phase === 'ended') return
    this.#note('session/failed', { code: error.code, reason: error.message }, error)
    this.#boundary.end(error, this.views())
    void this.#end(error.message, error.exitStatus)
  }

  /** `status` null is the server's own. The first reason wins. */
  async #end(reason: string | null, status: number | null): Promise<void> {
    if (this.#phase === 'ending' || this.#phase === 'ended') return
    this.#phase = 'ending'
    this.#inTime()
    const instance = this.#instances.serving
    const why = (): string => reason ?? instance?.reason ?? 'it ended'
    this.#relay?.close(unavailable(this.#options.server.name, why()))
    const boundary = this.#boundary.stop(why(), instance?.state === 'starting')
    const [isProven] = await Promise.all([this.#instances.stopAll(why()), boundary])
    if (isProven) await instance?.drained
    this.#boundary.end(unavailable(this.#options.server.name, why()), this.views())
    this.#talk.clear()
    this.#relay?.disconnect()
    this.#phase = 'ended'
    if (this.#host !== null) await closeStream(this.#host)
    await Promise.all([instance?.drained, this.#instances.gone]) // without proof they are shown until that comes
    const end = sessionEnd(reason, status, instance)
    this.#note('session/ended', { ...end })
    this.#ended.resolve(end)
  }

  #note(type: string, detail: Readonly<Record<string, unknown>>, error?: SallyportError): void {
    this.#notes.add(type, this.#instances.serving?.id ?? null, { session: this.id, ...detail }, error)
  }
}
