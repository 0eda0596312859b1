// The process tree of one sandbox, from the launcher's first instruction to the proof that nothing is left of it.
import type { ChildProcess } from 'node:child_process'
import type { Duplex, Readable } from 'node:stream'
import { enough, SallyportError } from '../../errors.ts'
import { holdsWithin, within } from '../../lib/deadline.ts'
import { shortageTold } from '../../lib/missing.ts'
import type { SandboxExit, SandboxProcess } from '../driver.ts'
import type { OuterLimits } from '../limits/limits.ts'
import {
  childrenNow,
  childrenOf,
  isGone,
  isGoneOrOrphan,
  killExactly,
  killSession,
  type ProcessIdentity,
} from '../proof.ts'
import { ControlChannel } from '../control/channel.ts'
import { followReports, processOf, type RunningPlan, type RunningSandbox } from '../running.ts'
import { holdUntilRead, streamOn } from '../streams.ts'

/** How long what was killed may take to be gone before it is killed again and said so, ms. */
const goneMs = 2_000
/** How much of the launcher's stderr is kept for the error, bytes. */
const diagnosticBytes = 8_192
/** How a tool ends that finds no room for a file below the limit on its size: a want as that of a full disk. */
const endedByFileLimit = 'it ended by SIGXFSZ'

/** What the tree needs of a launch's plan. */
export interface TreePlan extends RunningPlan {
  readonly outerLimits: OuterLimits
}

/** Owns the launcher that it is given, all that comes of it, and the limits around it. */
export class ConfinedTree implements RunningSandbox {
  readonly channel: ControlChannel
  /** Resolves once nothing is left; never rejects */
  readonly ended: Promise<SandboxExit>
  readonly #plan: TreePlan
  readonly #monitor: ChildProcess
  readonly #monitorEnd: Promise<string>
  readonly #stdin: Duplex
  readonly #stdout: Readable
  readonly #stderr: Readable
  readonly #diagnosticsEnd: Promise<void>
  readonly #endIsAsked = Promise.withResolvers<void>()
  #init: ProcessIdentity | null = null
  #following: Promise<void> = Promise.resolve()
  #reason: SandboxExit['reason'] | null = null
  #exit: Pick<SandboxExit, 'code' | 'signal'> = { code: null, signal: null }
  #diagnostics = ''

  constructor(monitor: ChildProcess, { spec, enforcedBy, log, outerLimits }: TreePlan) {
    // Never the whole plan of the launch: what it has for the sandbox to read would stay for as long as the server runs.
    this.#plan = { spec, enforcedBy, log, outerLimits }
    this.#monitor = monitor
    this.channel = new ControlChannel(streamOn(monitor, 3))
    this.#stdin = streamOn(monitor, 4)
    this.#stdout = holdUntilRead(streamOn(monitor, 5))
    this.#stderr = holdUntilRead(streamOn(monitor, 6))
    this.#diagnosticsEnd = this.#collect(streamOn(monitor, 2))
    this.#monitorEnd = untilEnd(monitor)
    this.ended = this.#untilNothingIsLeft()
  }

  /**
   * Learns which process of the host is the sandbox's PID 1, so that it can be killed and its end proven. Call it when init
   * has reported ready: once who covered /proc is gone, the monitor's only child is init. Throws ERR_SANDBOX_SETUP where it
   * isn't, since whoever else came from outside has rights in there.
   *
   * Not from bubblewrap's status descriptor: when the daemon dies, writing there kills bubblewrap by SIGPIPE just before it
   * lets its child go on, and that child would wait for ever.
   */
  async identifyInit(): Promise<void> {
    let children: readonly ProcessIdentity[] = []
    await holdsWithin(() => (children = childrenOf(this.#monitor.pid ?? 0)).length < 2, goneMs)
    const [init] = children
    if (init !== undefined && children.length === 1) {
      this.#init = init
      return
    }
    const { server } = this.#plan.spec
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      init === undefined
        ? `PID 1 of the sandbox of ${server} is not to be seen below bubblewrap; was it killed, or is /proc mounted with hidepid?`
        : `${children.length} processes are below bubblewrap ${goneMs} ms after the sandbox of ${server} was ready, expected its PID 1 alone; see who stopped one of pids ${children.map(({ pid }) => pid).join(', ')}`,
      { step: 'gate', server },
    )
  }

  // The kernel counts a kill for want of memory before it kills: whoever sees the end of it, be that before the watch looks again or
  // init has said how its server ended, is told of that.
  get reason(): SandboxExit['reason'] | null {
    return this.#reason !== 'killed' && this.#plan.outerLimits.hasRunOut() ? 'oom' : this.#reason
  }

  /** Nobody is asked to: who stops it does so by signals, process by process. */
  readonly isPaused = false

  /** Whether PID 1 has ended, or is about to with its monitor: both may be heard of later than they are to be seen. */
  get isLost(): boolean {
    return this.channel.isClosed || (this.#init !== null && isGoneOrOrphan(this.#init))
  }

  /** Host pid of the sandbox's PID 1, once it is identified; 0 before that */
  get initPid(): number {
    return this.#init?.pid ?? 0
  }

  /** Hands the running server over, and watches it from now on. */
  follow(): SandboxProcess {
    this.#plan.outerLimits.watch(this.initPid, () => this.end('oom'))
    this.#following = this.#followReports()
    return processOf(this, this.#plan, { stdin: this.#stdin, stdout: this.#stdout, stderr: this.#stderr })
  }

  /** Kills everything at once; the first reason is kept. */
  end(reason: SandboxExit['reason']): void {
    this.#reason ??= reason
    this.channel.send({ type: 'kill' })
    // Without its channel init ends even where the order found nobody to read it: not started yet, or stopped.
    this.channel.end()
    // Not the monitor: it is the one who reaps PID 1, and a daemon that is PID 1 of a container would inherit the zombie.
    // Before it is known, whoever is below the monitor: one that somebody stopped obeys no order, and would outlive its monitor.
    for (const one of this.#init === null ? this.#below() : [this.#init]) killExactly(one)
    this.#endIsAsked.resolve()
  }

  /** Until it was reaped nobody else has its pid. */
  #below(): readonly ProcessIdentity[] {
    const { pid, exitCode, signalCode } = this.#monitor
    return pid === undefined || exitCode !== null || signalCode !== null ? [] : childrenNow(pid)
  }

  /** Returns the error for a sandbox that ended before its server started, with what the launcher wrote to stderr. */
  async setupFailure(): Promise<SallyportError> {
    const [how] = await within(
      Promise.all([this.#monitorEnd, this.#diagnosticsEnd]),
      goneMs,
      stillThere,
    ).catch((): [string] => ['it does not end'])
    const { server } = this.#plan.spec
    const stderr = this.#diagnostics.trim()
    const said = stderr.split('\n').at(-1) || how
    const stage =
      this.channel.heard === 0
        ? 'could not be built'
        : 'was built, and ended before its server was heard to start'
    const cause =
      how === endedByFileLimit ? Object.assign(new Error(how), { code: 'EFBIG' }) : shortageTold(said)
    return new SallyportError(
      cause === undefined ? 'ERR_SANDBOX_SETUP' : 'ERR_SHORTAGE',
      `the sandbox of ${server} ${stage}: ${said}; ${cause === undefined ? 'run sallyport doctor to see what this machine lacks' : enough}`,
      { step: 'confine', server, status: how, stderr, heard: this.channel.heard, reason: this.#reason },
      { cause },
    )
  }

  /** Kills, waits for the proof, and closes what the server wrote; bounded, and says so where something stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.end('killed')
    const { server, instance } = this.#plan.spec
    await within(this.ended, 5 * goneMs, stillThere).catch((error: unknown) =>
      this.#plan.log.error({ server, instance, error }, 'sandbox does not end'),
    )
    this.#stdout.destroy()
    this.#stderr.destroy()
  }

  // Read to the end, since a launcher that nobody listens to would block; of a flood the last part is kept.
  #collect(diagnostics: Readable): Promise<void> {
    return new Promise((resolve) => {
      diagnostics.on('data', (chunk: Buffer) => {
        this.#diagnostics = (this.#diagnostics + chunk.toString()).slice(-diagnosticBytes)
      })
      diagnostics.once('close', resolve)
    })
  }

  async #followReports(): Promise<void> {
    this.#exit = (await followReports(this, this.#plan)) ?? this.#exit
  }

  async #untilNothingIsLeft(): Promise<SandboxExit> {
    const { spec, outerLimits, log } = this.#plan
    // Whichever of the monitor and init goes first, the other is taken along.
    await Promise.race([this.#monitorEnd, this.channel.closed, this.#endIsAsked.promise])
    for (let tries = 0; !(await this.#isGone(tries === 0 ? 100 : 1_000)); tries += 1) {
      this.end('sandbox-lost')
      if (tries === 0) continue
      log.error(
        { server: spec.server, instance: spec.instance, tries },
        'sandbox does not end, killing its session',
      )
      // A monitor that failed half way leaves a child that waits for it for ever, and whose pid nobody knows.
      killSession(this.#monitor.pid ?? 0)
    }
    await this.#following
    this.#reason = this.reason
    try {
      await outerLimits[Symbol.asyncDispose]()
    } catch (error) {
      log.error(
        { server: spec.server, instance: spec.instance, error },
        'limits of the sandbox are still there',
      )
    }
    this.#stdin.destroy()
    return { ...this.#exit, reason: this.#reason ?? 'sandbox-lost' }
  }

  // All three: the monitor reaped, no process left that holds the channel, PID 1 out of the process table.
  async #isGone(ms: number): Promise<boolean> {
    const ends = Promise.all([this.#monitorEnd, this.channel.closed])
    const haveEnded = await within(ends, ms, stillThere).then(
      () => true,
      () => false,
    )
    const init = this.#init
    return haveEnded && (init === null || (await holdsWithin(() => isGone(init), ms)))
  }
}

const stillThere = (): Error => new Error('processes of the sandbox are still there')

// `exit`, not `close`: a descendant that holds a stream open would put `close` off for as long as it likes.
const untilEnd = (monitor: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    monitor.once('error', (error) => resolve(error.message))
    monitor.once('exit', (code, signal) =>
      resolve(signal === null ? `it ended with status ${code}` : `it ended by ${signal}`),
    )
  })
