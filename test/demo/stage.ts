// Where the demo plays: a daemon of its own, folders that go away again, and what a hostile server would like to have.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { createSocket, type Socket } from 'node:dgram'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { eventually } from '../support/eventually.ts'
import { connect, type Client } from '../../src/client/client.ts'
import { rootOf } from './root.ts'

/** The built command line, as people run it. */
export const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
/** The config in this folder. */
export const config = fileURLToPath(new URL('sallyport.yaml', import.meta.url))
/** What every planted secret holds, so that it is known when it is seen. */
export const canary = 'canary-of-the-demo'

/** What confines the demo's servers. */
export type Driver = 'bubblewrap' | 'docker'

/** Undoes what was set up, last first. */
export class Stage implements AsyncDisposable {
  readonly driver: Driver
  readonly #undo: (() => unknown)[] = []

  constructor(driver: Driver) {
    this.driver = driver
  }

  /** A folder that goes away with the stage. */
  async folder(parent: string, prefix: string): Promise<string> {
    const path = await mkdtemp(join(parent, prefix))
    this.#undo.push(() => rm(path, { recursive: true, force: true }))
    return path
  }

  onEnd(undo: () => unknown): void {
    this.#undo.push(undo)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const undo of this.#undo.splice(0).toReversed()) await undo()
  }
}

/** A running daemon, and a host's connection to it. */
export interface Daemon {
  readonly pid: number
  readonly client: Client
  readonly runtimeDir: string
}

/** Starts `sallyport serve` on the demo's config, in folders of its own, with a secret in its environment. */
export async function startDaemon(stage: Stage, given?: string): Promise<Daemon> {
  const path = given ?? (await configUnder(stage))
  const folder = await stage.folder(tmpdir(), 'sallyport-demo-')
  const runtimeDir = join(folder, 'run')
  const args = [cli, 'serve', '--config', path, '--runtime', runtimeDir, '--state', join(folder, 'state')]
  const child = spawn(process.execPath, args, {
    env: secretEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)))
  const ended = once(child, 'exit')
  stage.onEnd(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const client = await eventually(async () => {
    if (child.exitCode !== null)
      throw new Error(`sallyport serve ended with status ${child.exitCode}:\n${said}`)
    return await connect({ at: { runtimeDir } }).catch(() => undefined)
  }, 180_000)
  stage.onEnd(() => client[Symbol.asyncDispose]())
  return { pid: client.hello.pid, client, runtimeDir }
}

/** The config in this folder; under another driver a copy of it, in which every server names that one and its image. */
async function configUnder(stage: Stage): Promise<string> {
  if (stage.driver === 'bubblewrap') return config
  const folder = await stage.folder(tmpdir(), 'sallyport-demo-')
  const { servers, ...rest } = parse(await readFile(config, 'utf8')) as DemoConfig
  const root = await rootOf(stage)
  const here = (path: string): string => join(dirname(config), path)
  const moved = Object.entries(servers).map(([name, server]) => {
    const { source, with: more = [], target } = server.package
    const code = { target, source: here(source), with: more.map(here) }
    const mounts = (server.mounts ?? []).map((mount) => ({ ...mount, source: here(mount.source) }))
    return [name, { ...server, ...root.server, package: code, mounts }]
  })
  const path = join(folder, 'sallyport.yaml')
  const value = { ...rest, allowed_commands: root.commands, servers: Object.fromEntries(moved) as unknown }
  await writeFile(path, JSON.stringify(value), { mode: 0o600 })
  return path
}

/** As much of the demo's config as has a path in it. */
interface DemoConfig {
  readonly servers: Readonly<
    Record<
      string,
      {
        readonly package: {
          readonly source: string
          readonly target: string
          readonly with?: readonly string[]
        }
        readonly mounts?: readonly { readonly source: string }[]
      }
    >
  >
}

/** The environment of somebody who has a token in it. */
export const secretEnvironment = (): NodeJS.ProcessEnv => ({ ...process.env, DEMO_API_TOKEN: canary })

/** Things of the machine that are worth having, planted where a server would look. */
export interface Loot {
  /** The home, with at least one name in it */
  readonly home: string
  /** A private key in the home */
  readonly key: string
  /** A file that is there to be written */
  readonly victim: string
  /** A TCP service on loopback that greets with the canary */
  readonly tcp: { readonly host: string; readonly port: number }
  /** A service on a unix socket that does the same */
  readonly unix: { readonly host: string; readonly port: number }
  /** A UDP service on loopback */
  readonly udp: { readonly host: string; readonly port: number }
  /** Datagrams that have arrived there */
  readonly datagrams: () => number
}

export async function plant(stage: Stage): Promise<Loot> {
  // Where the home can't be written, or is not there, a folder stands for it
  const inHome = await stage.folder(homedir(), '.sallyport-demo-').catch(() => null)
  const folder = inHome ?? (await stage.folder(tmpdir(), 'sallyport-home-'))
  const key = join(folder, 'id_ed25519')
  await writeFile(key, `-----BEGIN OPENSSH PRIVATE KEY-----\n${canary}\n`, { mode: 0o600 })
  const shared = await stage.folder(tmpdir(), 'sallyport-loot-')
  await chmod(shared, 0o755)
  await mkdir(join(shared, 'project'))
  const victim = join(shared, 'project', 'Makefile')
  await writeFile(victim, 'all:\n')
  const tcp = await listen(stage, { host: '127.0.0.1', port: 0 })
  const path = join(shared, 'service.sock')
  await listen(stage, { path })
  const udp = await receiver(stage)
  let datagrams = 0
  udp.on('message', () => datagrams++)
  return {
    home: inHome === null ? folder : homedir(),
    key,
    victim,
    tcp: { host: '127.0.0.1', port: (tcp.address() as AddressInfo).port },
    unix: { host: path, port: 0 },
    udp: { host: '127.0.0.1', port: udp.address().port },
    datagrams: () => datagrams,
  }
}

async function listen(
  stage: Stage,
  where: { host: string; port: number } | { path: string },
): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`${canary}\n`)
  })
  server.listen(where)
  await once(server, 'listening')
  stage.onEnd(() => new Promise((resolve) => server.close(resolve)))
  return server
}

async function receiver(stage: Stage): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  stage.onEnd(() => new Promise<void>((resolve) => socket.close(() => resolve())))
  return socket
}
