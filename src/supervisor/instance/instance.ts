// One instance: a server's process and its life, from launch to the proof that nothing is left.
import type { InstanceState, InstanceView } from '../../rpc/protocol.ts'
import type { SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { SallyportError } from '../../errors.ts'
import { type InstanceId, newInstanceId } from '../../lib/ids.ts'
import { type Aftermath, calledOff, type Life, limitsOf, type Lost, lostLaunch, nextTryAt } from './life.ts'
import { LaunchLimit } from './launch-limit.ts'
import type { LogRing } from './log-ring.ts'
import type { Emit, Launch, Running } from '../ports.ts'
import { describeExit, release, whyStill } from './process-end.ts'
import { type InstanceEvent, next } from './states.ts'
import { ignoreStreamError, keepStderr } from './stderr.ts'
import { stop } from './stop.ts'

export interface InstanceOptions {
  readonly server: ServerSettings
  readonly purpose: InstanceView['purpose']
  /** Uid of the principal whose instance it is */
  readonly principal: string
  readonly launch: Launch
  readonly emit: Emit
  readonly logs: LogRing
  /** Decides what follows an end that nobody asked for; called before the state changes */
  readonly afterLoss: (lost: Lost) => Aftermath
}

/** Holds the state and the process. Whoever made it stops it; stopping is idempotent. */
export class Instance implements AsyncDisposable {
  readonly #options: InstanceOptions
  #id = newInstanceId()
  #life: Life = { state: 'stopped', reason: null }
  #startedAt: Date | null = null
  #startedMs = 0
  #wasLost = false
  #restarts = 0
  #limits: InstanceView['limits'] = null
  #gone: Promise<void> = Promise.resolve()
  #drained: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | null = null
  /** Why it is not proven that nothing is left of a process that was stopped, until it is */
  #unproven: SallyportError | null = null
  #isUnwanted = false
  #exit: SandboxExit | null = null

  constructor(options: InstanceOptions) {
    this.#options = options
  }

  /** The id of the current or last process; every start has its own. */
  get id(): InstanceId {
    return this.#id
  }

  get state(): InstanceState {
    return this.#life.state
  }

  /** Why it is where it is, in one line. */
  get reason(): string | null {
    return 'reason' in this.#life ? this.#life.reason : null
  }

  /** How the last process ended, or null. */
  get exit(): SandboxExit | null {
    return this.#exit
  }

  /** Resolves when the process that was last started is gone and the state says so. */
  get gone(): Promise<void> {
    return this.#gone
  }

  /** Resolves when the last output of the last process has been read, or given up after a bounded time. */
  get drained(): Promise<void> {
    return this.#drained
  }

  /**
   * Launches a process and returns it while the instance is still `starting`; `ready()` is for whoever sees the
   * handshake. Fails with the launch's own error.
   */
  async start(id: InstanceId = newInstanceId()): Promise<Running> {
    const launch = new AbortController()
    const { server, principal } = this.#options
    this.#apply('start', { state: 'starting', launch, process: null }, null, id)
    this.#exit = null
    this.#unproven = null
    if (this.#wasLost) this.#restarts++
    this.#wasLost = false
    this.#startedAt = new Date()
    this.#startedMs = performance.now()
    let finish = (): void => undefined
    this.#gone = new Promise((resolve) => (finish = resolve))
    const limit = new LaunchLimit(server, launch)
    const waiting = { signal: launch.signal, registered: limit.registered, principal }
    let process: Running
    try {
      process = await this.#options.launch(server, id, waiting)
    } catch (thrown) {
      const error = SallyportError.from(launch.signal.aborted ? launch.signal.reason : thrown)
      try {
        this.#lose(lostLaunch(error))
      } finally {
        finish()
      }
      throw error
    } finally {
      limit[Symbol.dispose]()
    }
    this.#adopt(process, launch, finish)
    if (launch.signal.aborted) throw SallyportError.from(launch.signal.reason)
    return process
  }

  /** The server has answered the handshake. Too late is no mistake: it may be on its way out already. */
  ready(): void {
    if (this.#life.state !== 'starting' || this.#life.process === null) return
    this.#apply('ready', { state: 'ready', process: this.#life.process, since: performance.now() }, null)
  }

  /** Runs the stop ladder and resolves when nothing is left. In a state without a process it does nothing but say so. */
  stop(reason: string): Promise<void> {
    this.#isUnwanted = true
    this.#wasLost = false
    return this.#end(reason)
  }

  #end(reason: string): Promise<void> {
    if (this.state === 'backoff') this.#apply('ended', { state: 'stopped', reason }, reason)
    if (this.#unproven !== null) return Promise.reject(this.#unproven)
    this.#stopping ??= this.#climbDown(reason).finally(() => (this.#stopping = null))
    return this.#stopping
  }

  /**
   * Ends a process that is of no use, by the ladder, and then treats it as lost, unless somebody stops it meanwhile. One
   * that is gone already, was.
   */
  async abandon(reason: string, retryable: boolean): Promise<void> {
    if (this.#life.state !== 'starting' && this.#life.state !== 'ready') return
    const readyMs = this.#life.state === 'ready' ? performance.now() - this.#life.since : null
    this.#isUnwanted = false
    await this.#end(reason)
    if (this.state === 'stopped' && !this.#isUnwanted)
      this.#settle({ reason, readyMs, retryable, exit: this.#exit })
  }

  /** Moves an instance without a process on: `quarantine`, `release`, `disable`, `enable`, `ended`, `fail`. */
  mark(event: 'quarantine' | 'release' | 'disable' | 'enable' | 'ended' | 'fail', reason: string): void {
    const state = next(this.#life.state, event)
    if (state === 'stopped') this.#apply(event, { state, reason }, reason)
    else if (state === 'quarantined' || state === 'disabled' || state === 'failed')
      this.#apply(event, { state, reason }, reason)
  }

  view(): InstanceView {
    const { principal, purpose } = this.#options
    const process = 'process' in this.#life ? this.#life.process : null
    return {
      id: this.#id,
      state: this.#life.state,
      purpose,
      pid: process?.initPid ?? null,
      started_at: this.#startedAt?.toISOString() ?? null,
      up_ms: process === null ? null : Math.round(performance.now() - this.#startedMs),
      restarts: this.#restarts,
      principal,
      sessions: null,
      limits: process === null ? null : this.#limits,
      orphans: process?.orphans() ?? null,
      reason: this.reason ?? whyStill(process),
      next_try_at: nextTryAt(this.#life),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('Sallyport is stopping')
  }

  #adopt(process: Running, launch: AbortController, finish: () => void): void {
    this.#limits = limitsOf(process)
    keepStderr(process, this.#options, this.#id)
    for (const stream of [process.stdin, process.stdout]) stream.on('error', ignoreStreamError)
    if (this.#life.state === 'starting') this.#life = { state: 'starting', launch, process }
    else if (this.#life.state === 'stopping') this.#life = { ...this.#life, process }
    // A launch that was called off and came through all the same leaves nothing behind.
    if (launch.signal.aborted) {
      process.kill()
      process.stdout.resume()
    }
    const watched = this.#watch(process).finally(finish)
    this.#drained = watched.then(() => release(process))
  }

  /** Waits for the end of the process, whoever asked for it; `ended` never rejects. */
  async #watch(process: SandboxProcess): Promise<void> {
    const exit = await process.ended
    const life = this.#life
    // Where a stop gave up before there was proof of the end, another may have been started.
    if ('process' in life && life.process !== process) return
    this.#exit = exit
    if (!('process' in life)) return
    const reason = describeExit(exit)
    switch (life.state) {
      case 'starting':
        return this.#lose({ reason: `${reason} before it was ready`, readyMs: null, retryable: true, exit })
      case 'ready':
        return this.#lose({ reason, readyMs: performance.now() - life.since, retryable: true, exit })
      case 'draining':
      case 'stopping':
        return this.#stopped(life.reason, reason)
    }
  }

  #lose(lost: Lost): void {
    const life = this.#life
    if (life.state === 'stopping') this.#stopped(life.reason, lost.reason)
    else if (life.state === 'starting' || life.state === 'ready') this.#settle(lost)
  }

  #stopped(why: string, how: string): void {
    const reason = why === how ? why : `${why}; ${how}`
    this.#apply('ended', { state: 'stopped', reason }, reason)
  }

  #settle(lost: Lost): void {
    const { state } = this.#life
    this.#wasLost = true
    const decided = this.#options.afterLoss(lost)
    // Whoever decided may have stopped it in the same turn, as a storm does: it has ended, and is marked by them.
    const aftermath = this.#life.state === state ? decided : ({ event: 'ended' } as const)
    const { reason } = lost
    switch (aftermath.event) {
      case 'ended':
        if (this.#life.state === 'stopped') return undefined
        return this.#apply('ended', { state: 'stopped', reason }, reason)
      case 'fail':
        return this.#apply('fail', { state: 'failed', reason }, reason)
      case 'quarantine':
        return this.#apply('quarantine', { state: 'quarantined', reason }, reason)
      case 'need-auth':
        return this.#apply('need-auth', { state: 'needs-auth', reason }, reason)
      case 'back-off':
        return this.#apply('back-off', { state: 'backoff', reason, next: aftermath.next }, reason)
    }
  }

  async #climbDown(reason: string): Promise<void> {
    const life = this.#life
    if (life.state !== 'starting' && life.state !== 'ready') return
    if (life.process === null) {
      this.#apply('stop', { state: 'stopping', process: null, reason }, reason)
      if (life.state === 'starting') life.launch.abort(calledOff(this.#options.server.name, reason))
      await this.#gone
      return
    }
    const { process } = life
    this.#apply('drain', { state: 'draining', process, reason }, reason)
    const beforeTerminate = (): void => {
      if (this.#life.state === 'draining') this.#apply('stop', { state: 'stopping', process, reason }, reason)
    }
    try {
      await stop(process, { ...this.#options.server.stop, beforeTerminate })
      await this.#gone
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      if (this.#life.state === 'stopping') {
        this.#apply('fail', { state: 'failed', reason: error.message }, error.message)
        // The proof may only be late, as where there was no descriptor to look with.
        this.#unproven = error
        void this.#untilProven(process, this.#life, error, reason)
      }
      throw error
    }
  }

  async #untilProven({ ended }: SandboxProcess, failed: Life, why: SallyportError, reason: string) {
    await ended
    if (this.#unproven === why) this.#unproven = null
    if (this.#life === failed) this.#apply('ended', { state: 'stopped', reason }, reason)
  }

  #apply(event: InstanceEvent, life: Life, reason: string | null, id: InstanceId = this.#id): void {
    const [from, to] = [this.#life.state, next(this.#life.state, event)]
    if (to !== life.state)
      throw new SallyportError('ERR_INTERNAL', `${event} leads from ${from} to ${to}, not ${life.state}`)
    this.#life = life
    this.#id = id
    const { emit, principal, purpose, server } = this.#options
    emit({
      type: 'instance/state',
      server: server.name,
      instance: id,
      principal,
      detail: { from, to, event, purpose, reason, next_try_at: nextTryAt(life) },
    })
  }
}
