// A real daemon of the built command line, in folders of its own, that must leave nothing behind.
import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect } from '../../src/client/client.ts'
import type { Client } from '../../src/client/client.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { eventually } from './eventually.ts'
import { cgroupsOf, processesWith } from './leaks.ts'
import { knownRuntime, ownCode } from './probe-folder.ts'
import { tempDir } from './temp-dir.ts'
import { patienceMs } from './patience.ts'

export const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** How one run of the command line went. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly status: number
}

interface RunOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Folders, a configuration and a command line that know of nothing else on this machine. */
export interface Place extends AsyncDisposable {
  readonly folder: string
  readonly runtimeDir: string
  readonly stateDir: string
  readonly config: string
  readonly env: Readonly<Record<string, string>>
  /** Runs the command line to its end; stdin is empty unless given */
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  /** Starts it and leaves it running; its streams are pipes. Disposing the place kills it, and so does the end of this process, however that ends */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess
  connect(role?: 'host' | 'operator'): Promise<Client>
}

/** A place with a daemon in it. */
export interface TestDaemon extends Place {
  readonly process: ChildProcess
  /** A connection that lives as long as the daemon's test */
  readonly client: Client
}

/** A server's entry that runs a fixture, confined as Node needs it. */
export function fixture(name: string, more: object = {}): object {
  return {
    command: 'node',
    args: [`/app/${name}.mjs`],
    package: { source: fixtures, target: '/app' },
    profile: 'node',
    trust: 'trusted',
    acceptance: 'first-use',
    timeouts: { initialize_ms: 60_000 }, // Node comes up in seconds where others are at work
    ...more,
  }
}

/** A configuration of these servers that allows everything, unless `more` says otherwise. */
export function configOf(servers: Readonly<Record<string, object>>, more: object = {}): object {
  return {
    version: 1,
    allowed_commands: [{ name: 'node', path: process.execPath }],
    rules: [{ permission: 'mcp:*:*', action: 'allow' }],
    servers,
    ...more,
  }
}

/** Makes a place with a configuration, and no daemon. `node` is what the command line runs on. */
export async function place(config: object = configOf({}), node = process.execPath): Promise<Place> {
  if (!existsSync(main)) throw new Error(`${main} is missing; run npm run build`)
  const [folder, initPath] = [await tempDir(), await findInitBinary()]
  const at = (name: string): string => join(folder.path, name)
  await writeFile(at('sallyport.yaml'), JSON.stringify(config), { mode: 0o600 })
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder.path,
    SALLYPORT_CONFIG: at('sallyport.yaml'),
    SALLYPORT_RUNTIME_DIR: at('run'),
    SALLYPORT_STATE_DIR: at('state'),
    ...ownCode(),
  }
  const started: ChildProcess[] = []
  return {
    folder: folder.path,
    runtimeDir: at('run'),
    stateDir: at('state'),
    config: at('sallyport.yaml'),
    env,
    run: (args, options = {}) => run(node, args, { ...options, env: { ...env, ...options.env } }),
    start(args, more) {
      const options = { env: { ...env, ...more }, cwd: folder.path, stdio: 'pipe' } as const
      const tied = ['tied', `${process.pid}`, node, main]
      const child = spawn(initPath, [...tied, ...args], options)
      started.push(child)
      return child
    },
    connect: (role = 'host') => connect({ at: { runtimeDir: at('run'), role } }),
    async [Symbol.asyncDispose]() {
      for (const child of started) if (child.exitCode === null) child.kill('SIGKILL')
      for (const pid of processesWith(`${folder.path}/`)) terminate(pid)
      // The guard of a killed daemon takes up to three seconds.
      await eventually(() => processesWith(`${folder.path}/`).length === 0)
      const daemons = listed(join(folder.path, 'state', 'daemons')).map((name) => name.replace('.json', ''))
      await eventually(() => daemons.every((daemon) => cgroupsOf(daemon).length === 0))
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** Starts a daemon in a place and waits until it answers. */
export async function serve(
  at: Place,
  env: Readonly<Record<string, string>> = {},
): Promise<Pick<TestDaemon, 'process' | 'client'>> {
  await knowsRuntime(at)
  const child = at.start(['serve'], env)
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)))
  const client = await eventually(async () =>
    child.exitCode === null ? at.connect('operator').catch(() => null) : ('ended' as const),
  )
  if (client === 'ended') throw new Error(`serve ended with status ${child.exitCode}: ${said}`)
  // The operator's door opens first, and this record is written when the hosts' door is open, too.
  await eventually(() => existsSync(join(at.runtimeDir, 'host', 'daemon.json')))
  return { process: child, client }
}

/** Gives a place what a daemon before it would have left of the runtime, where there is nothing yet. */
async function knowsRuntime({ stateDir }: Place): Promise<void> {
  const [known, own] = [knownRuntime(), join(stateDir, 'programs.json')]
  if (known === undefined || !existsSync(known) || existsSync(own)) return
  if (!existsSync(stateDir)) await mkdir(stateDir, { mode: 0o700 })
  await copyFile(known, own)
}

/** Leaves a daemon that `serve` started, asks it to end, and waits until it has. */
export async function endServe({
  process: child,
  client,
}: Pick<TestDaemon, 'process' | 'client'>): Promise<void> {
  await client[Symbol.asyncDispose]()
  child.kill('SIGTERM')
  await eventually(() => child.exitCode !== null)
}

/** Starts a daemon on a configuration and waits until it answers. */
export async function daemon(
  config: object = configOf({}),
  env: Readonly<Record<string, string>> = {},
): Promise<TestDaemon> {
  const at = await place(config)
  try {
    const { process: child, client } = await serve(at, env)
    return {
      ...at,
      process: child,
      client,
      async [Symbol.asyncDispose]() {
        await client[Symbol.asyncDispose]()
        if (child.exitCode === null && child.signalCode === null) {
          const ended = once(child, 'exit')
          child.kill('SIGTERM')
          await ended
        }
        await at[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await at[Symbol.asyncDispose]()
    throw error
  }
}

function run(node: string, args: readonly string[], { input = '', env }: RunOptions): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { env: env ?? {}, cwd: '/', timeout: patienceMs, maxBuffer: 64 * 1024 * 1024 }
    const child = execFile(node, [main, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code
      resolve({ stdout, stderr, status: typeof code === 'number' ? code : -1 })
    })
    child.stdin?.on('error', () => undefined) // it may have ended before it read
    child.stdin?.end(input)
  })
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // it has just ended
  }
}

function listed(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}
