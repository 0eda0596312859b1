// What a run of scale is about: a daemon with so many of the smallest servers, and the process in which their hosts are.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { configOf, place, serve, type Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { livingAt } from '../support/living.ts'
import { tempDir } from '../support/temp-dir.ts'

// As URLs, which is what Node takes paths for, too, and without a space, at which the variable would be cut
const collects = new URL('../chaos/collects.mjs', import.meta.url).href
const tells = new URL('tells.mjs', import.meta.url).href

/** One call as its host saw it; moments are µs of the monotonic clock. */
export interface Called {
  readonly dueUs: number
  /** From the moment at which it was due until its answer, null where none came */
  readonly takenUs: number | null
  /** How late the hosts' process itself was */
  readonly lateUs: number
  readonly isOk: boolean
}

/** Disposing ends the hosts, the daemon and all servers, and removes the folder. */
export class Stage implements AsyncDisposable {
  readonly at: Place
  readonly daemon: ChildProcess
  readonly hosts: Hosts
  #stack: AsyncDisposableStack

  private constructor(at: Place, daemon: ChildProcess, hosts: Hosts, stack: AsyncDisposableStack) {
    this.at = at
    this.daemon = daemon
    this.hosts = hosts
    this.#stack = stack
  }

  /** `load` is a module that the daemon is given beside its own, to see what it changes. */
  static async open(servers: number, load: string | null): Promise<Stage> {
    await using stack = new AsyncDisposableStack()
    const bin = stack.use(await tempDir()).path
    chmodSync(bin, 0o755)
    const tiny = compiled(join(bin, 'tiny'), 'server.c', ['-static'])
    const at = stack.use(await place(configuration(servers, tiny)))
    const modules = [collects, tells, ...(load === null ? [] : [load])]
    const { process: daemon, client } = await serve(at, {
      NODE_OPTIONS: ['--expose-gc', ...modules.map((url) => `--import=${url}`)].join(' '),
      SALLYPORT_SCALE_TOLD: join(at.folder, 'told'),
      SALLYPORT_CHAOS_LIVING: join(at.folder, 'living'),
    })
    stack.defer(async () => {
      if (daemon.exitCode !== null || daemon.signalCode !== null) return
      const ended = once(daemon, 'exit')
      daemon.kill('SIGTERM')
      await ended
    })
    stack.use(client)
    const program = compiled(join(bin, 'hosts'), 'hosts.c', ['-lm'])
    const hosts = stack.use(new Hosts(program, join(at.runtimeDir, 'host/host.sock')))
    return new Stage(at, daemon, hosts, stack.move())
  }

  get pid(): number {
    return this.daemon.pid ?? 0
  }

  /** What lives in the daemon once all garbage is collected, MiB. */
  async livingMib(): Promise<number> {
    await this.#collected() // what a first collection gives back outside the heap, a second one no longer counts
    return this.#collected()
  }

  async #collected(): Promise<number> {
    const path = join(this.at.folder, 'living')
    rmSync(path, { force: true })
    this.daemon.kill('SIGUSR2')
    return (await eventually(() => livingAt(path), 30_000)).bytes / 1024 ** 2
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** The process of hosts.c. */
export class Hosts implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(program: string, socket: string) {
    this.#child = spawn(program, [socket], { stdio: ['pipe', 'pipe', 'inherit'] })
    if (this.#child.stdout === null) throw new Error('no pipe')
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Brings sessions up until there are so many; how long each took until its tools were listed, ms. */
  async up(sessions: number): Promise<readonly number[]> {
    const said = await this.#say(`up ${sessions}`)
    return said.map((line) => Number(line.replace('launch ', '')))
  }

  /** Calls at so many a second over all sessions, for so long; resolves when the last is answered, or 10 s after it was due. */
  async call(rate: number, seconds: number): Promise<readonly Called[]> {
    const said = await this.#say(`call ${rate} ${seconds}`)
    return said.map((line) => {
      const [dueUs = 0, taken = 0, lateUs = 0, ok] = line.split(' ').map(Number)
      return { dueUs, takenUs: taken < 0 ? null : taken, lateUs, isOk: ok === 1 }
    })
  }

  async #say(line: string): Promise<readonly string[]> {
    this.#child.stdin?.write(`${line}\n`)
    const said: string[] = []
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done === true) throw new Error(`hosts ended at: ${line}`)
      if (value === 'done') return said
      if (value.startsWith('failed ')) throw new Error(`hosts, at ${line}: ${value}`)
      said.push(value)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.stdin?.end()
    this.#child.kill('SIGTERM')
    await ended
  }
}

function configuration(servers: number, tiny: string): object {
  const names = Array.from({ length: servers }, (_, n) => `tiny${n}`)
  const entry = { command: 'tiny', profile: 'offline', trust: 'trusted', acceptance: 'first-use' }
  return configOf(Object.fromEntries(names.map((name) => [name, entry])), {
    allowed_commands: [{ name: 'tiny', path: tiny }],
  })
}

function compiled(path: string, source: string, flags: readonly string[]): string {
  execFileSync('cc', ['-O2', '-o', path, fileURLToPath(new URL(source, import.meta.url)), ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return path
}
