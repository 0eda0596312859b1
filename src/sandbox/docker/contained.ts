// One container, from its creation to the proof that nothing is left of it.
import { readFile, readlink, stat } from 'node:fs/promises'
import type { Duplex, Readable } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { holdsWithin, within } from '../../lib/deadline.ts'
import { errnoOf } from '../../lib/missing.ts'
import { ControlChannel } from '../control/channel.ts'
import type { SandboxExit, SandboxProcess } from '../driver.ts'
import type { GatePlan } from '../gate.ts'
import { followReports, processOf, type RunningPlan, type RunningSandbox } from '../running.ts'
import { identify, isGone, isStopped, killExactly, type ProcessIdentity } from '../proof.ts'
import type { Engine } from './engine.ts'
import type { EngineWatch } from './watch.ts'

/** How long what was killed may take to be gone before it is killed again and said so, ms. */
const goneMs = 2_000
/** How long the engine may take to let go of a container of which nothing runs any more, ms. */
const removedMs = 2_000
/** How much of what was said before the server ran is kept for the error, bytes. */
const diagnosticBytes = 8_192

/** What the container needs of a launch's plan. */
export type ContainedPlan = GatePlan & RunningPlan

/** A container with init connected, and the connections of its streams. */
export interface ContainerParts {
  readonly engine: Engine
  readonly watch: EngineWatch
  readonly id: string
  readonly control: Duplex
  readonly stdin: Duplex
  readonly stdout: Readable
  readonly stderr: Readable
  /** Takes the folder down */
  readonly letGo: () => Promise<void>
  /** Told of a container that the engine still has, to be removed once it answers again */
  readonly owe: (id: string) => void
}

/** Owns the container that it is given. */
export class Contained implements RunningSandbox {
  readonly channel: ControlChannel
  /** Resolves once nothing is left; never rejects */
  readonly ended: Promise<SandboxExit>
  readonly #plan: ContainedPlan
  readonly #parts: ContainerParts
  readonly #hearing: Disposable
  readonly #endIsAsked = Promise.withResolvers<void>()
  readonly #removed = Promise.withResolvers<void>()
  #init: ProcessIdentity | null = null
  #initPid = 0
  #following: Promise<void> = Promise.resolve()
  #reason: SandboxExit['reason'] | null = null
  #exit: Pick<SandboxExit, 'code' | 'signal'> = { code: null, signal: null }
  #isOutOfMemory = false
  #isPaused = false

  constructor(parts: ContainerParts, plan: ContainedPlan) {
    this.#parts = parts
    this.#plan = plan
    this.channel = new ControlChannel(parts.control)
    this.#hearing = parts.watch.of(parts.id, (event) => this.#hear(event))
    for (const stream of [parts.stdout, parts.stderr]) stream.once('error', (error) => this.#lose(error))
    this.ended = this.#untilNothingIsLeft()
  }

  /** Whether nothing can be said to PID 1 any more: its channel's end may be heard later than its death is to be seen. */
  get isLost(): boolean {
    return this.channel.isClosed || (this.#init !== null && isGone(this.#init))
  }

  /**
   * Learns which process of the host is the container's PID 1, so that it can be killed and its end proven without the
   * engine. Where the engine's pids are not ours, as from inside a container, its own word has to do.
   */
  async identifyInit({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const facts = await this.#parts.engine.inspect(this.#parts.id, { signal })
    const pid = facts?.State.Pid ?? 0
    if (pid === 0 || !(await isIn(pid, this.#parts.id))) return
    this.#initPid = pid
    this.#init = identify(pid)
  }

  /**
   * Throws ERR_SANDBOX_SETUP where the container's first process is another file than the one at that path, whatever the engine
   * was asked for. The kernel tells that to root; to an ordinary daemon it does not, nor where the pid is not known.
   */
  async requireInit(path: string): Promise<void> {
    if (this.#initPid === 0) return
    const [ours, runs] = await Promise.all([stat(path), stat(`/proc/${this.#initPid}/exe`).catch(unknown)])
    if (runs === null || (runs.dev === ours.dev && runs.ino === ours.ino)) return
    const { server } = this.#plan.spec
    const is = await readlink(`/proc/${this.#initPid}/exe`).catch(() => 'another file')
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `the first process of the container of ${server} is ${is} and not Sallyport’s init: the engine or the image put another in its place; use another image, or an engine that you trust`,
      { step: 'confine', server },
    )
  }

  get reason(): SandboxExit['reason'] | null {
    return this.#reason
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Whether nothing in it moves, or nobody moves what it says: it is paused, or PID 1 or the engine’s process around it stands still. */
  get isStopped(): boolean {
    return this.#isPaused || (this.#init !== null && [this.#init.pid, this.#init.parent].some(isStopped))
  }

  get initPid(): number {
    return this.#initPid
  }

  follow(): SandboxProcess {
    const { stdin, stdout, stderr } = this.#parts
    this.#following = this.#followReports()
    return processOf(this, this.#plan, { stdin, stdout, stderr })
  }

  /** Kills everything at once, by init, by its pid and by the engine, since each may be out of reach; the first reason is kept. */
  end(reason: SandboxExit['reason']): void {
    this.#reason ??= reason
    this.channel.send({ type: 'kill' })
    this.channel.end()
    this.#killInit()
    // What the engine says to it is told by the container's end.
    void this.#parts.engine.kill(this.#parts.id, 'SIGKILL').catch(() => undefined)
    this.#endIsAsked.resolve()
  }

  async setupFailure(): Promise<SallyportError> {
    const said = await within(lastOf(this.#parts.stderr), goneMs, stillThere).catch(() => '')
    return setupFailure(this.#plan.spec.server, said)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end('killed')
    await within(this.ended, 5 * goneMs, stillThere).catch((error: unknown) =>
      this.#plan.log.error({ ...this.#names, error }, 'container does not end'),
    )
    this.#parts.stdout.destroy()
    this.#parts.stderr.destroy()
  }

  get #names(): Readonly<Record<string, unknown>> {
    const { server, instance } = this.#plan.spec
    return { server, instance, container: this.#parts.id }
  }

  #hear(event: string): void {
    if (event === 'destroy') this.#removed.resolve()
    if (event === 'oom') {
      this.#isOutOfMemory = true
      this.end('oom')
    }
    if (event === 'pause' || event === 'unpause') this.#isPaused = event === 'pause'
    // What it says and hears goes through the engine: without that there is no server to speak with.
    if (event === 'lost') this.end('engine-lost')
  }

  // Where frames can't be told apart any more nothing more is heard of it.
  #lose(error: Error): void {
    this.#plan.log.error({ ...this.#names, error }, 'what a container says can not be read')
    this.end('sandbox-lost')
  }

  // An ordinary daemon may not signal another uid's process, which a root daemon's containers have.
  #killInit(): void {
    if (this.#init !== null) killExactly(this.#init)
  }

  async #followReports(): Promise<void> {
    const names = { container: this.#parts.id }
    this.#exit = (await followReports(this, this.#plan, names)) ?? this.#exit
  }

  async #untilNothingIsLeft(): Promise<SandboxExit> {
    await Promise.race([this.channel.closed, this.#endIsAsked.promise, this.#removed.promise])
    for (let tries = 0; !(await this.#isGone(tries === 0 ? 100 : goneMs)); tries += 1) {
      this.end('sandbox-lost')
      if (tries > 0) this.#plan.log.error({ ...this.#names, tries }, 'container does not end')
    }
    await this.#following
    await this.#remove()
    this.#hearing[Symbol.dispose]()
    if (this.#isOutOfMemory && this.#reason !== 'killed') this.#reason = 'oom'
    await this.#letGo()
    this.#parts.stdin.destroy()
    return { ...this.#exit, reason: this.#reason ?? 'sandbox-lost' }
  }

  // No process that holds the channel, and PID 1 out of the process table: the kernel ended all others before.
  async #isGone(ms: number): Promise<boolean> {
    const hasEnded = await within(this.channel.closed, ms, stillThere).then(
      () => true,
      () => false,
    )
    const init = this.#init
    return hasEnded && (init === null || (await holdsWithin(() => isGone(init), ms)))
  }

  // With no descriptor to be had it can’t even be read. Nothing in it is secret, and it goes with the daemon’s at the latest.
  async #letGo(): Promise<void> {
    try {
      await this.#parts.letGo()
    } catch (error) {
      this.#plan.log.error(
        { ...this.#names, error },
        'the folder of a container that has ended is still there',
      )
    }
  }

  // Nothing of it runs. The engine removes it by itself; one that is slow, or gone, is owed the rest.
  async #remove(): Promise<void> {
    const { engine, id, owe } = this.#parts
    const ms = removedMs / 2
    try {
      await within(this.#removed.promise, ms, stillThere).catch(async () => {
        await engine.remove(id, { ms })
      })
    } catch (error) {
      owe(id)
      this.#plan.log.error(
        { ...this.#names, error },
        'the engine does not let go of a container that has ended',
      )
    }
  }
}

/** The error for a container that ended before its server started, with what init wrote to stderr. */
export const setupFailure = (server: string, said: string): SallyportError => {
  const stderr = said.trim()
  const cause = stderr.split('\n').at(-1) || 'it ended without a word'
  return new SallyportError(
    'ERR_SANDBOX_SETUP',
    `the container of ${server} could not be built: ${cause}; run sallyport doctor to see what this machine and its engine lack`,
    { step: 'confine', server, stderr },
  )
}

/** Reads to the end, and returns the last of it. */
export const lastOf = async (stream: Readable): Promise<string> => {
  let kept = ''
  for await (const chunk of stream) kept = (kept + String(chunk)).slice(-diagnosticBytes)
  return kept
}

// Gone already, which its channel tells with the reason, or not to be looked at by an ordinary user.
const unknown = (error: unknown): null => {
  if (['EACCES', 'ENOENT', 'EPERM', 'ESRCH'].includes(errnoOf(error) ?? '')) return null
  throw error
}

// Another process may have that pid here: each of a container's is in a control group of its name.
const isIn = async (pid: number, container: string): Promise<boolean> => {
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
  return groups.includes(container)
}

const stillThere = (): Error => new Error('the container is still there')
