// A sandbox driven frame by frame, with nothing of the product in it but the binary under test and the real bubblewrap.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { eventually } from './eventually.ts'
import { frame, framesIn, type Received } from './init-frames.ts'
import { tempDir } from './temp-dir.ts'

const sandboxFolder = fileURLToPath(new URL('../../sandbox', import.meta.url))
const libexec = fileURLToPath(new URL('../../dist/libexec', import.meta.url))

/** Whether this run can test what only root does. */
export const isRoot = process.getuid?.() === 0

/** Ids that the server gets: root must drop to others, anybody else keeps their own. */
export const ids = isRoot
  ? { uid: 61_234, gid: 61_235 }
  : { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 }

/** Builds the binary where sources are newer, and returns its path. */
export const buildInit = (variant: 'native' | 'asan' = 'native'): string => {
  execFileSync('make', ['-s', '-C', sandboxFolder, variant === 'asan' ? 'asan' : 'all'], { stdio: 'inherit' })
  return join(libexec, variant === 'asan' ? 'asan' : process.arch, 'sallyport-init')
}

/** A folder below a parent that only root may search, as a clone in root's home is. */
export const closedFolder = (): Disposable & { readonly path: string } => {
  const outer = mkdtempSync(join(isRoot ? '/root' : tmpdir(), 'sp-closed-'))
  chmodSync(outer, 0o700)
  const path = join(outer, 'inside')
  mkdirSync(path)
  return { path, [Symbol.dispose]: () => rmSync(outer, { recursive: true, force: true }) }
}

const collect = (stream: Duplex): (() => Buffer) => {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {})
  return () => Buffer.concat(chunks)
}

/** How a process ended, as Node says it. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** One launch: what went in is up to the test, what came out is kept. Disposing kills. */
export class InitProcess implements AsyncDisposable {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  readonly control: Duplex
  readonly stdin: Duplex
  readonly stdout: () => Buffer
  readonly stderr: () => Buffer
  readonly diagnostics: () => Buffer
  readonly outputEnded: Promise<void>
  readonly #reports: () => Buffer
  readonly #streams: readonly Duplex[]

  constructor(
    command: string,
    args: readonly string[],
    options: { env?: Record<string, string>; fds?: number } = {},
  ) {
    const extra = Array.from({ length: options.fds ?? 0 }, () => 'pipe' as const)
    this.child = spawn(command, args, {
      env: options.env ?? {},
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', ...extra],
    })
    const { promise, resolve, reject } = Promise.withResolvers<Ended>()
    this.ended = promise
    this.child.once('error', reject)
    const streams: readonly unknown[] = this.child.stdio
    this.#streams = streams.slice(3) as Duplex[]
    const at = (fd: number): Duplex => streams[fd] as Duplex
    this.control = at(3)
    this.stdin = at(4).on('error', () => {})
    this.diagnostics = collect(at(2))
    this.#reports = collect(this.control)
    this.stdout = collect(at(5))
    this.outputEnded = new Promise((done) => at(5).once('end', done))
    this.stderr = collect(at(6))
    // `close` waits for every stream to end, which the sandbox's pid 1 proves by ending.
    this.child.once('close', (code, signal) => resolve({ code, signal }))
  }

  send(...frames: readonly Uint8Array[]): this {
    this.control.write(Buffer.concat(frames))
    return this
  }

  /** Closes the supervisor's end of the control channel. */
  hangUp(): this {
    this.control.destroy()
    return this
  }

  get reports(): Received[] {
    return framesIn(this.#reports())
  }

  /** Waits for the first report of a type. */
  async report(type: string): Promise<Buffer> {
    const found = await eventually(() => this.reports.find((report) => report.type === type))
    return found.payload
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of this.#streams) stream.destroy()
    this.child.kill('SIGKILL')
    await this.ended
  }
}

/** What a test changes of the usual launch. */
export interface Launch {
  readonly init?: string
  readonly bwrap?: readonly string[]
  readonly data?: readonly { readonly option: string; readonly bytes: Uint8Array }[]
  /** Host folder -> path in the sandbox, writable */
  readonly binds?: Readonly<Record<string, string>>
  readonly cgroups?: readonly string[]
  readonly capabilities?: readonly string[]
}

const words = (text: string): string[] => text.split(' ')

/** The orders of the outer launcher, up to and with exec. */
export const outerOrders = (launch: Launch = {}): Buffer[] => {
  const sources = [launch.init ?? buildOnce(), ...Object.keys(launch.binds ?? {})]
  const staged = (index: number): string => (isRoot ? `/tmp/${index}` : (sources[index] ?? ''))
  const options = [
    ...words('--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --unshare-net'),
    ...words('--uid 1000 --gid 1000 --as-pid-1 --new-session --cap-drop ALL'),
    ...(launch.capabilities ?? ['CAP_SYS_RESOURCE', 'CAP_SETPCAP']).flatMap((name) => ['--cap-add', name]),
    ...words('--clearenv --ro-bind /usr /usr --proc /proc --ro-bind /proc/sys /proc/sys'),
    ...words('--bind /proc/sys/user /proc/sys/user --symlink usr/bin /bin --symlink usr/lib /lib'),
    ...words('--symlink usr/lib64 /lib64 --tmpfs /dev --dev-bind /dev/null /dev/null --tmpfs /tmp'),
    ...words(`--ro-bind ${staged(0)} /sallyport/init`),
    ...Object.values(launch.binds ?? {}).flatMap((target, index) => ['--bind', staged(index + 1), target]),
    ...(launch.bwrap ?? []),
  ]
  return [
    ...(launch.cgroups ?? []).map((procs) => frame('c', procs)),
    ...(isRoot ? sources.map((source, index) => frame('m', source, `${index}`)) : []),
    frame('u', ids.uid, ids.gid),
    frame('b', '/usr/bin/bwrap'),
    ...options.map((option) => frame('a', option)),
    ...(launch.data ?? []).flatMap(({ option, bytes }) => [frame('a', option), frame('d', bytes)]),
    frame('x'),
  ]
}

/** The server and what surrounds it, as init is told. */
export interface Server {
  readonly argv: readonly string[]
  readonly program?: string
  readonly env?: Readonly<Record<string, string>>
  readonly extra?: readonly Buffer[]
  readonly cwd?: string
  readonly oneExec?: boolean
  readonly eofMs?: number
  readonly termMs?: number
}

/** The orders of init, from the report to go. */
export const initOrders = ({ argv, program, env, extra, cwd, oneExec, eofMs, termMs }: Server): Buffer[] => [
  frame('r'),
  ...argv.map((element) => frame('g', element)),
  ...Object.entries({ PATH: '/usr/bin', ...env }).map(([name, value]) => frame('e', `${name}=${value}`)),
  ...(extra ?? []),
  frame('w', cwd ?? '/tmp'),
  frame('o', oneExec === true ? 1 : 0, eofMs ?? 100, termMs ?? 100),
  frame('G', program ?? argv[0] ?? ''),
]

/** A shell script as the server. */
export const shell = (script: string, more: Partial<Server> = {}): Server => ({
  argv: ['/usr/bin/sh', '-c', script],
  ...more,
})

/** Starts a server in the usual sandbox. */
export const launch = (server: Server, more: Launch = {}): InitProcess =>
  new InitProcess(buildOnce(), ['outer']).send(...outerOrders(more), ...initOrders(server))

let built: string | null = null
const buildOnce = (): string => (built ??= buildInit())

/** A copy of the binary that a test may change. */
export const copyInit = (folder: string): string => {
  const path = join(folder, 'sallyport-init')
  copyFileSync(buildOnce(), path)
  return path
}

/** What a server said and how everything ended. */
export interface Outcome extends Ended {
  readonly stdout: string
  readonly stderr: string
  readonly diagnostics: string
  readonly reports: readonly Received[]
}

/** Runs a server to its end. */
export const run = async (server: Server, more: Launch = {}): Promise<Outcome> => {
  await using sandbox = launch(server, more)
  return await outcome(sandbox)
}

/** Waits for the end and gathers all that came. */
export const outcome = async (sandbox: InitProcess): Promise<Outcome> => ({
  ...(await sandbox.ended),
  stdout: sandbox.stdout().toString(),
  stderr: sandbox.stderr().toString(),
  diagnostics: sandbox.diagnostics().toString(),
  reports: sandbox.reports,
})

/** Calls `work` on every item, `width` at a time: real processes, and two cores. */
export const inParallel = async <T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  width = 6,
): Promise<void> => {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}

/** A sandbox tool of a test's own, where the dropped user can execute it: it says on stderr what it was given. */
export const fakeTool = async (script: string): Promise<AsyncDisposable & { readonly path: string }> => {
  const folder = await tempDir()
  chmodSync(folder.path, 0o755)
  const path = join(folder.path, 'tool')
  writeFileSync(path, `#!/bin/sh\nexec >&2\n${script}\n`, { mode: 0o755 })
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

/** The orders of the outer launcher for such a tool, whatever came before. */
export const handOver = (path: string): Buffer[] => [
  frame('u', ids.uid, ids.gid),
  frame('b', path),
  frame('x'),
]
