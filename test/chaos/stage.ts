// Where a run takes place: folders, a configuration, and the daemon in them, which is killed, ended and started again.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import { main, place, type Place } from '../support/daemon.ts'
import { type Faults, faults } from '../support/fault.ts'
import { isRoot } from '../support/user.ts'
import { witness, type Witness } from '../support/witness.ts'
import type { Account } from './account.ts'
import { type Api, openApi } from './api.ts'
import { type Clock, openClock } from './clock.ts'
import { ConfigFile } from './config-file.ts'
import { mountSmallDisk, mountStateDisk } from './disk.ts'
import { inGoodTime, orLate } from '../support/pace.ts'
import { threadsOf } from './parts.ts'
import { secrets } from './secrets.ts'
import { type Around, configuration, profiles } from './servers.ts'

// As a URL, which is what Node takes a path for, too
const collects = new URL('collects.mjs', import.meta.url).href
/** What a start may take until it answers, and a proper end, which takes the ladder of the slowest server */
const [startMs, endMs] = [20_000, 25_000]

export interface StageOptions {
  readonly account: Account
  /** How long the run is, for the size of its disk */
  readonly seconds: number
  /** What takes up the ids of its daemons */
  readonly daemons: Set<string>
  /** How a daemon finds the engine; null where there is none */
  readonly engine: Readonly<Record<string, string>> | null
}

/** Disposing ends the daemon and removes everything, unless something is to be looked at. */
export class Stage implements AsyncDisposable {
  readonly at: Place
  readonly seen: Witness
  readonly api: Api
  readonly account: Account
  /** Ids of the daemons that have answered, oldest first */
  readonly daemons: Set<string>
  /** Where the daemon and all of its launches keep temporary files */
  readonly scratch: string
  /** Folders that are disks of the run's own */
  readonly disks: readonly string[]
  /** Where the daemon writes down how much lives in it, and what Node keeps for it */
  readonly living: string
  /** What befalls the daemon from within, once it is armed */
  readonly fault: Faults
  readonly config: ConfigFile
  readonly #clock: Clock
  #owned = new AsyncDisposableStack()
  #daemon: ChildProcess | null = null
  #isEnding = false
  #isOver = false
  #log: string
  #env: Readonly<Record<string, string>>

  private constructor(at: Place, seen: Witness, api: Api, around: Around, options: StageOptions) {
    const { account, daemons, engine } = options
    this.at = at
    this.seen = seen
    this.api = api
    this.account = account
    this.scratch = join(at.folder, 'tmp')
    this.disks = isRoot ? [at.stateDir, at.runtimeDir, this.scratch] : []
    this.fault = faults(at.folder)
    this.config = new ConfigFile(at.config, seen, around)
    this.daemons = daemons
    this.#log = join(at.folder, 'daemon.log')
    this.living = join(at.folder, 'living')
    this.#clock = openClock(at.folder)
    this.#env = {
      ...at.env,
      ...engine,
      ...this.fault.env,
      LD_PRELOAD: `${this.fault.env['LD_PRELOAD']}:${this.#clock.library}`,
      SALLYPORT_CLOCK: this.#clock.path,
      SALLYPORT_CHAOS_LIVING: this.living,
      TMPDIR: this.scratch,
      CHAOS_KEY: secrets.key,
    }
  }

  static async open(options: StageOptions): Promise<Stage> {
    await using owned = new AsyncDisposableStack()
    const seen = owned.use(await witness())
    const api = owned.use(await openApi())
    const around = { hasContainers: options.engine !== null, port: api.port }
    const at = owned.use(await place(configuration(seen, around)))
    const folder = join(at.folder, 'profiles')
    mkdirSync(folder, { mode: 0o700 })
    for (const [name, profile] of Object.entries(profiles(around)))
      writeFileSync(join(folder, name), JSON.stringify(profile), { mode: 0o600 })
    writeFileSync(join(at.folder, 'word'), secrets.word, { mode: 0o600 })
    const stage = new Stage(at, seen, api, around, options)
    owned.use(stage.#clock)
    for (const path of [at.stateDir, at.runtimeDir, stage.scratch]) mkdirSync(path, { mode: 0o700 })
    if (isRoot) {
      owned.use(mountStateDisk(at.stateDir, options.seconds))
      for (const path of [at.runtimeDir, stage.scratch]) owned.use(mountSmallDisk(path))
    }
    stage.#owned = owned.move()
    return stage
  }

  /** The daemon's pid while it runs. */
  get pid(): number | null {
    const daemon = this.#daemon
    return daemon === null || hasEnded(daemon) || daemon.pid === undefined ? null : daemon.pid
  }

  /** Starts it and waits until it answers; false where it was ended before it did, or the stage is gone. */
  async start({ mayEnd = false } = {}): Promise<boolean> {
    if (this.#isOver) return false
    this.#isEnding = mayEnd
    const daemon = this.#spawn()
    this.#daemon = daemon
    const isUp = await this.#isAnswering(daemon)
    if (mayEnd) this.#isEnding = !isUp
    return isUp
  }

  #spawn(more: object = {}): ChildProcess {
    const log = openSync(this.#log, 'a')
    const args = ['--expose-gc', '--import', collects, main, 'serve']
    const daemon = spawn(process.execPath, args, {
      env: { ...this.#env, ...more },
      cwd: this.at.folder,
      stdio: ['ignore', 'ignore', log],
    })
    closeSync(log)
    daemon.once('exit', (code, signal) => {
      if (this.#daemon === daemon && !this.#isEnding)
        this.account.breaks('lives', `it ended by itself with ${code ?? signal}: ${this.lastWords()}`)
    })
    return daemon
  }

  /**
   * Starts another daemon beside the one that runs, and does what may have it take that one's place. Resolves with which of them goes on,
   * once the other has ended as one that must not; breaks `alone` where both go on, and `lives` where neither does.
   */
  async contend(
    act: (first: number, other: number) => Promise<void>,
    { env = {}, patienceMs = startMs + endMs }: { readonly env?: object; readonly patienceMs?: number } = {},
  ): Promise<'the first' | 'the other' | 'neither'> {
    const first = this.#daemon
    if (first === null || this.pid === null) return 'neither'
    this.#isEnding = true
    const other = this.#spawn(env)
    const [one, two] = [once(first, 'exit'), once(other, 'exit')]
    await act(first.pid ?? 0, other.pid ?? 0)
    if ((await orLate(Promise.race([one, two]), patienceMs)) === 'late') {
      this.account.breaks('alone', `two daemons run: ${first.pid} and ${other.pid}: ${this.lastWords()}`)
      other.kill('SIGKILL')
      await two
    }
    const isFirst = hasEnded(other)
    this.#daemon = isFirst ? first : other
    const loser = isFirst ? other : first
    if (loser.exitCode !== 1 && loser.signalCode !== 'SIGKILL')
      this.account.breaks(
        'lives',
        `the daemon that had to give way ended with ${loser.exitCode ?? loser.signalCode}`,
      )
    const isUp = await this.#isAnswering(this.#daemon)
    this.#isEnding = !isUp
    if (isUp) return isFirst ? 'the first' : 'the other'
    this.account.breaks('lives', `of two daemons neither lives: ${this.lastWords(6)}`)
    return 'neither'
  }

  /** Waits until it answers; false where it ends before it does. */
  async #isAnswering(daemon: ChildProcess): Promise<boolean> {
    const waiting = new AbortController()
    const isUp = await orLate(this.#answered(daemon, waiting.signal), startMs)
    waiting.abort()
    if (isUp !== 'late') return isUp
    const words = `it does not answer after ${startMs / 1000} s, stretched for this machine`
    this.account.breaks('recovers', `${words}: ${this.lastWords()}`)
    return false
  }

  async #answered(daemon: ChildProcess, signal: AbortSignal): Promise<boolean> {
    while (!hasEnded(daemon) && !signal.aborted) {
      const client = await this.at.connect('operator').catch(() => null)
      if (client !== null) {
        this.daemons.add(client.hello.daemon)
        await client[Symbol.asyncDispose]()
        return true
      }
      await delay(20)
    }
    return false
  }

  /** Does to it what it may end by; false where it has, or did not run. */
  async outlives(act: (pid: number) => Promise<void>): Promise<boolean> {
    const daemon = this.#daemon
    if (daemon === null || this.pid === null) return false
    this.#isEnding = true
    await act(this.pid)
    const isUp = await this.#isAnswering(daemon)
    this.#isEnding = !isUp
    return isUp
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** SIGTERM, and the proper end after it. */
  async end(): Promise<void> {
    const daemon = this.#daemon
    if (daemon === null || !(await this.#end('SIGTERM'))) return
    if (daemon.exitCode !== 0)
      this.account.breaks(
        'lives',
        `SIGTERM ended it with ${daemon.exitCode ?? daemon.signalCode}: ${this.lastWords()}`,
      )
  }

  /** Does what makes it stand down by itself, and waits for that. */
  async standDown(act: () => void): Promise<void> {
    await this.#end(act)
  }

  async #end(how: NodeJS.Signals | (() => void)): Promise<boolean> {
    const daemon = this.#daemon
    this.#isEnding = true
    if (daemon === null || hasEnded(daemon)) return false
    const ended = once(daemon, 'exit')
    if (typeof how === 'function') how()
    else daemon.kill(how)
    if ((await orLate(ended, endMs)) !== 'late') return true
    this.account.breaks(
      'lives',
      `it did not end within ${endMs / 1000} s, stretched for this machine; its threads: ${threadsOf(daemon.pid ?? 0)}; its log: ${this.lastWords(12)}`,
    )
    daemon.kill('SIGKILL')
    await ended
    return false
  }

  /** Puts its wall clock so far from the machine's. */
  setClock(offsetMs: number): void {
    this.#clock.set(offsetMs)
  }

  /** An operator's connection to a daemon that is to run: a machine that is busy may refuse some first. */
  operator = (): Promise<Client> => inGoodTime(() => this.at.connect('operator'), startMs)

  /** How often its log has said this. */
  saidSo(words: string): number {
    return readFileSync(this.#log, 'utf8').split(words).length - 1
  }

  lastWords(lines = 3): string {
    return readFileSync(this.#log, 'utf8').trim().split('\n').slice(-lines).join(' | ')
  }

  /** Ends the daemon, and copies the folders to one that stays; returns its path. */
  async keep(): Promise<string> {
    await this.#end('SIGTERM')
    const kept = `${this.at.folder}-kept`
    execFileSync('cp', ['-a', this.at.folder, kept])
    execFileSync('cp', ['-a', this.seen.source, join(kept, 'seen')])
    return kept
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#end('SIGTERM')
    await this.#owned.disposeAsync()
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null
