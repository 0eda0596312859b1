// From the wish to a server's first line: in a container beside `docker run` of the same image, in a bubblewrap sandbox
// beside a bare process. Taken in turns, in one run. Run: node test/bench/container-launch.ts [rounds]
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

const rounds = Number(process.argv[2] ?? 15)
const socketPath = '/var/run/docker.sock'
const fixtures = new URL('../fixtures/servers', import.meta.url).pathname
const says = 'says-status.mjs'

/** Time until a process's first bytes, ms; it is awaited to its end, which is not counted. */
const firstLine = async (stdout: Readable, started: number): Promise<number> => {
  await once(stdout, 'data')
  const tookMs = performance.now() - started
  stdout.resume()
  return tookMs
}

const spawned = async (program: string, args: readonly string[]): Promise<number> => {
  const started = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const tookMs = await firstLine(child.stdout, started)
  await ended
  return tookMs
}

const environment = { DOCKER_HOST: `unix://${socketPath}` }
using engine = await openEngine(findEndpoint(environment), environment)
const at = {
  engine,
  environment,
  docker: new Docker({ socketPath }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
}
const image = await importImage(at, 'bench-launch', {
  files: { ...(await nodeFiles()), [`/app/${says}`]: { from: join(fixtures, says) } },
})
await using host = await launchHost({ environment, drivers: ['bubblewrap', 'docker'] })

const inContainer: Settings = {
  ...(await settingsFor(says, [], { driver: 'docker', image, package: null })),
  allowedCommands: [{ name: 'node', path: '/usr/local/bin/node', interpreter: null }],
}
const inSandbox = await settingsFor(says, [])

const launched = async (settings: Settings): Promise<number> => {
  const started = performance.now()
  await using server = await launchProbe(settings, host)
  const tookMs = await firstLine(server.stdout, started)
  server.stdin.end()
  await server.ended
  return tookMs
}

const dockerRun = ['run', '--rm', '--network', 'none', image, '/usr/local/bin/node', `/app/${says}`]
const ways = {
  'a bare process': () => spawned(process.execPath, [join(fixtures, says)]),
  'in bubblewrap': () => launched(inSandbox),
  '`docker run`': () => spawned('docker', dockerRun),
  'driver: docker': () => launched(inContainer),
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

for (const way of Object.values(ways)) await way()
const taken = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]))
for (let round = 0; round < rounds; round += 1)
  for (const [name, way] of Object.entries(ways)) taken.get(name)?.push(await way())

const medians = Object.fromEntries([...taken].map(([name, values]) => [name, median(values)]))
for (const [name, ms] of Object.entries(medians))
  process.stdout.write(`${name.padEnd(16)} ${ms.toFixed(0).padStart(6)} ms\n`)
const ratio = (ours: string, theirs: string): string =>
  ((medians[ours] ?? 0) / (medians[theirs] ?? 1)).toFixed(2)
process.stdout.write(`driver: docker takes ${ratio('driver: docker', '`docker run`')} times \`docker run\`\n`)
