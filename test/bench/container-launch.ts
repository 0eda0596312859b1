// From the wish to a server's first line: as a bare process, in a bubblewrap sandbox, with `docker run` of an image, and with
// `driver: docker` of the same image, which is made of files of this machine. Run after npm run build:
// node test/bench/container-launch.ts [rounds]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import Docker from 'dockerode'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { openEngine } from '../../src/sandbox/docker/engine.ts'
import type { Settings } from '../../src/schema/settings.ts'
import { importImage, nodeFiles } from '../support/image.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { Undoing } from '../support/broken-off.ts'
import { counts } from './counts.ts'
import { type Arm, median, publish } from './figures.ts'
import { byTurns, type Measured } from './turns.ts'
import { heard } from './until.ts'

const { rounds } = counts({ rounds: 15 })
const socketPath = '/var/run/docker.sock'
const environment = { DOCKER_HOST: `unix://${socketPath}` }
const fixtures = new URL('../fixtures/servers', import.meta.url).pathname
const says = 'says-status.mjs'
const names = { run: 'docker run', driver: 'driver: docker' } as const

await using stack = new Undoing()
const here: Measured[] = [
  { name: 'a bare process', kind: 'base', once: () => spawned(process.execPath, [join(fixtures, says)]) },
]
const absent: Arm[] = []
const found = await image()
const drivers = ['bubblewrap', ...('id' in found ? (['docker'] as const) : [])] as const
const host = await stack.starting(() => launchHost({ environment, drivers }))
const inSandbox = await settingsFor(says, [])
here.push({ name: 'in bubblewrap', kind: 'ours', once: () => launched(inSandbox) })
if ('id' in found) {
  const { id } = found
  const inContainer: Settings = {
    ...(await settingsFor(says, [], { driver: 'docker', image: id, package: null })),
    allowedCommands: [{ name: 'node', path: '/usr/local/bin/node', interpreter: null }],
  }
  here.push(
    { name: names.run, kind: 'peer', once: () => spawned('docker', runOf(id)) },
    { name: names.driver, kind: 'ours', once: () => launched(inContainer) },
  )
} else
  absent.push(
    { name: names.run, kind: 'peer', values: [], ...found },
    { name: names.driver, kind: 'ours', values: [], ...found },
  )

const arms = await byTurns(here, rounds)
const taken = (name: string): number => median(arms.find((arm) => arm.name === name)?.values ?? [])
publish([
  {
    id: 'container-launch',
    what: 'from the wish to a server’s first line, in a container and without',
    unit: 'ms',
    arms: [...arms, ...absent],
    judged: [],
    ...('id' in found && {
      note: `driver: docker takes ${(taken(names.driver) / taken(names.run)).toFixed(2)} times docker run of the same image. There is no target for either.`,
    }),
  },
])

/** What `docker` is told, to run the fixture in a container of that image. */
function runOf(id: string): readonly string[] {
  return ['run', '--rm', '--network', 'none', id, '/usr/local/bin/node', `/app/${says}`]
}

/** An image that holds the fixture, or why there is none, or none that runs. */
async function image(): Promise<{ readonly id: string } | { readonly absent: string }> {
  const docker = new Docker({ socketPath })
  try {
    await new Docker({ socketPath, timeout: 10_000 }).ping()
    const engine = stack.use(await openEngine(findEndpoint(environment), environment))
    const at = { engine, environment, docker, [Symbol.asyncDispose]: () => Promise.resolve() }
    const files = { ...(await nodeFiles()), [`/app/${says}`]: { from: join(fixtures, says) } }
    const id = await importImage(at, 'bench-launch', { files })
    stack.defer(async () => void (await docker.getImage(id).remove({ force: true })))
    await spawned('docker', runOf(id)) // one may answer and yet run nothing
    return { id }
  } catch (error) {
    return {
      absent: `it needs an engine at ${socketPath} that runs containers, and its client: ${(error as Error).message}`,
    }
  }
}

/** Time until a process's first bytes, ms; it is awaited to its end, which is not counted. */
async function firstLine(stdout: Readable, started: number): Promise<number> {
  await heard(stdout, 'data')
  const tookMs = performance.now() - started
  stdout.resume()
  return tookMs
}

async function spawned(program: string, args: readonly string[]): Promise<number> {
  const started = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [tookMs] = await Promise.all([firstLine(child.stdout, started), once(child, 'exit')])
  return tookMs
}

async function launched(settings: Settings): Promise<number> {
  const started = performance.now()
  await using server = await launchProbe(settings, host)
  const tookMs = await firstLine(server.stdout, started)
  server.stdin.end()
  await server.ended
  return tookMs
}
