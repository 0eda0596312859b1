// dockerd of a run's own, which nobody else uses and which may be killed, held up and started again.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Docker from 'dockerode'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { type Engine, openEngine } from '../../src/sandbox/docker/engine.ts'
import { eventually } from './eventually.ts'
import { processesWith } from './leaks.ts'
import { tempDir } from './temp-dir.ts'
import { isRoot } from './user.ts'

/** An engine, and how it is named to a daemon: `DOCKER_HOST` in its environment. */
export interface TestEngine extends AsyncDisposable {
  readonly environment: Readonly<Record<'DOCKER_HOST', string>>
  readonly engine: Engine
  /** For what tests do and Sallyport never does: importing images, building, exec */
  readonly docker: Docker
}

/** A dockerd that belongs to one test, which may do to it what it likes. */
export interface OwnEngine extends TestEngine {
  /** Where it keeps everything; the command lines of its processes name it */
  readonly folder: string
  readonly dockerd: ChildProcess
  /** Starts it again on the same folder after it was killed, when its containers are dead as after a loss of power; throws as the first start does */
  restart(): Promise<void>
}

interface OwnOptions {
  /** OCI runtimes beside runc, as in daemon.json */
  readonly runtimes?: Readonly<
    Record<string, { readonly path: string; readonly runtimeArgs?: readonly string[] }>
  >
  /** More arguments of dockerd */
  readonly args?: readonly string[]
  /** Whether it maps the users of its containers, as an engine with `userns-remap` does */
  readonly isRemapped?: boolean
}

/** gVisor as it runs where there is no KVM, and with no network stack of its own to set up. */
export const gvisor = {
  runsc: { path: '/usr/bin/runsc', runtimeArgs: ['--platform=ptrace', '--network=none', '--host-uds=open'] },
}

/** How long one may take until it listens, ms: this machine may be busy. */
const startMs = 60_000

const hasDockerd = ['/usr/sbin/dockerd', '/usr/bin/dockerd'].some((path) => existsSync(path))

/** Whether tests may have an engine of their own here; those that need one are skipped by name where not. */
export const canStartEngine = isRoot && hasDockerd

/** Whether gVisor is installed, and can be given to an engine of a test's own. */
export const hasGvisor = canStartEngine && existsSync('/usr/bin/runsc')

/**
 * Starts dockerd with its own root and socket and no network; disposing ends it, with all that it left. Throws with what
 * it said last where it ends instead, or does not listen within a minute; nothing of it is left then.
 */
export const ownEngine = async ({
  runtimes = {},
  args = [],
  isRemapped = false,
}: OwnOptions = {}): Promise<OwnEngine> => {
  await using stack = new AsyncDisposableStack()
  const { path } = stack.use(await tempDir())
  const config = join(path, 'daemon.json')
  await writeFile(config, JSON.stringify({ runtimes }))
  const socket = join(path, 's')
  const log = join(path, 'log')
  const begin = async (): Promise<ChildProcess> => {
    const own = [
      `--config-file=${config}`,
      `--data-root=${path}/d`,
      `--exec-root=${path}/e`,
      `--pidfile=${path}/p`,
    ]
    const noNetwork = ['--iptables=false', '--ip-masq=false', '--bridge=none']
    const command = ['dockerd', `--host=unix://${socket}`, ...own, ...noNetwork, ...args]
    const [program = '', ...rest] = isRemapped ? await remapped(path, command) : command
    return spawn(program, rest, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
    })
  }
  let dockerd = await begin()
  stack.defer(async () => {
    await end(dockerd)
    await endRuntime(path)
    await unmountBelow(path)
    await rm(path, { recursive: true, force: true })
  })
  await listening(dockerd, log)
  const environment = { DOCKER_HOST: `unix://${socket}` }
  const engine = stack.use(await openEngine(findEndpoint(environment), environment))
  const owned = stack.move()
  return {
    folder: path,
    environment,
    engine,
    docker: new Docker({ socketPath: socket }),
    get dockerd() {
      return dockerd
    },
    restart: async () => {
      await end(dockerd)
      await endRuntime(path)
      await unmountBelow(`${path}/e`)
      for (const gone of ['e', 'p']) await rm(join(path, gone), { recursive: true, force: true })
      dockerd = await begin()
      await listening(dockerd, log)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

// The ids that users are mapped to stand in files of the machine; this dockerd alone gets others there.
const remapped = async (
  path: string,
  [dockerd = '', ...args]: readonly string[],
): Promise<readonly string[]> => {
  await chmod(path, 0o711) // it asks that whoever its root is mapped to gets in
  const ids = join(path, 'ids')
  await writeFile(ids, 'nobody:100000:65536\nnogroup:100000:65536\n')
  const script = `mount --bind ${ids} /etc/subuid && mount --bind ${ids} /etc/subgid && exec "$@"`
  return ['unshare', '--mount', 'sh', '-c', script, 'sh', dockerd, '--userns-remap=nobody:nogroup', ...args]
}

const listening = async (child: ChildProcess, log: string): Promise<void> => {
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()))
  child.once('error', (error) => (said += error.message))
  await eventually(() => /API listen on/.test(said) || hasEnded(child), startMs).catch(() => undefined)
  await writeFile(log, said)
  if (hasEnded(child))
    throw new Error(`dockerd ended with ${child.exitCode ?? child.signalCode}: ${said.slice(-2000)}`)
  if (!/API listen on/.test(said))
    throw new Error(`dockerd does not listen after ${startMs / 1000} s: ${said.slice(-2000)}`)
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const end = async (child: ChildProcess): Promise<void> => {
  child.kill('SIGCONT')
  child.kill('SIGTERM')
  await eventually(() => hasEnded(child), 20_000).catch(() => child.kill('SIGKILL'))
  await eventually(() => hasEnded(child))
}

// What a killed dockerd leaves running (containerd, a shim for each container) would hold the next one's locks.
const endRuntime = async (path: string): Promise<void> => {
  const left = (): readonly number[] => processesWith(`${path}/e`)
  for (const pid of left()) process.kill(pid, 'SIGKILL')
  await eventually(() => left().length === 0)
}

// A dockerd that was killed leaves the mounts of its containers, and no folder can be removed under them.
const unmountBelow = async (path: string): Promise<void> => {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
  for (const mount of mounts.filter((it) => it.startsWith(`${path}/`)).toReversed())
    await run('umount', ['-l', mount])
}

const run = (program: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'ignore' })
    child.once('error', reject)
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`)),
    )
  })
