// From the wish to a server's first line: as a bare process, in a bubblewrap sandbox, with `docker run` of an image, and with
// `driver: docker` of the same image, which is made of files of this machine. Run after npm run build:
// node test/bench/container-launch.ts [rounds]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../../src/schema/settings.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { Undoing } from '../support/broken-off.ts'
import { containers } from './containers.ts'
import { counts } from './counts.ts'
import { type Arm, median, publish } from './figures.ts'
import { byTurns, type Measured } from './turns.ts'
import { heard } from './until.ts'

const { rounds } = counts({ rounds: 15 })
const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
const says = 'says-status.mjs'
const names = { run: 'docker run', driver: 'driver: docker' } as const

await using stack = new Undoing()
const here: Measured[] = [
  { name: 'a bare process', kind: 'base', once: () => spawned(process.execPath, [join(fixtures, says)]) },
]
const absent: Arm[] = []
const docker = await stack.starting(containers)
const host = await stack.starting(() =>
  'run' in docker
    ? launchHost({ environment: docker.environment, drivers: ['bubblewrap', 'docker'] })
    : launchHost({ drivers: ['bubblewrap'] }),
)
const inSandbox = await settingsFor(says, [])
here.push({ name: 'in bubblewrap', kind: 'ours', once: () => launched(inSandbox) })
if ('run' in docker) {
  const inContainer: Settings = {
    ...(await settingsFor(says, [], { driver: 'docker', image: docker.image, package: null })),
    allowedCommands: [{ name: 'node', path: '/usr/local/bin/node', interpreter: null }],
  }
  const [program, ...args] = docker.run(says)
  here.push(
    { name: names.run, kind: 'peer', once: () => spawned(program, args) },
    { name: names.driver, kind: 'ours', once: () => launched(inContainer) },
  )
} else
  absent.push(
    { name: names.run, kind: 'peer', values: [], absent: docker.absent },
    { name: names.driver, kind: 'ours', values: [], absent: docker.absent },
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
    ...('run' in docker && {
      note: `driver: docker takes ${(taken(names.driver) / taken(names.run)).toFixed(2)} times docker run of the same image. There is no target for either.`,
    }),
  },
])

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
