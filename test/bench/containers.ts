// `docker run`, to stand beside: in an engine of the run's own where dockerd is installed and this is root, else in the one that answers.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import Docker from 'dockerode'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { openEngine } from '../../src/sandbox/docker/engine.ts'
import { importImage, nodeFiles } from '../support/image.ts'
import { processesWith } from '../support/leaks.ts'
import { canStartEngine, ownEngine, type TestEngine } from '../support/own-engine.ts'
import { reasonOf } from '../support/reason.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
const root = fileURLToPath(new URL('../..', import.meta.url))
const usual = 'unix:///var/run/docker.sock'
/** Ping and first run of an engine that answers and yet runs nothing, ms */
const answerMs = 60_000

/** A program with its arguments. */
export type Command = readonly [program: string, ...args: string[]]

/** An engine with an image that holds Node and the servers of the fixtures, below `/app`. */
export interface Containers extends AsyncDisposable {
  readonly environment: Readonly<Record<string, string>>
  readonly image: string
  /** What runs one of them by `docker run`, with this repo to be read at the path that it has here */
  run(script: string): Command
  /** What the engine keeps beside each container, by the ids of processes: none of those in it */
  beside(): Promise<readonly number[]>
  /** The processes of an engine of the run's own; none of another's */
  own(): readonly number[]
}

/** Why there is none. */
export interface NoContainers extends AsyncDisposable {
  readonly absent: string
}

/** Starts it, or says why there is none. It is shown to run something before anything is measured. */
export async function containers(): Promise<Containers | NoContainers> {
  await using stack = new AsyncDisposableStack()
  try {
    const at = stack.use(canStartEngine ? await ownEngine() : await anybodys())
    const host = at.environment.DOCKER_HOST
    const files = { ...(await nodeFiles()), '/app': { from: fixtures } }
    const image = await importImage(at, `bench-${process.pid}`, { files })
    stack.defer(async () => void (await at.docker.getImage(image).remove({ force: true })))
    const run = (script: string): Command => {
      const options = ['--rm', '-i', '--network', 'none', '-v', `${root}:${root}:ro`]
      const path = script.startsWith('/') ? script : join('/app', script)
      return ['docker', '--host', host, 'run', ...options, image, '/usr/local/bin/node', path]
    }
    const [program, ...args] = run('says-status.mjs')
    const first = promisify(execFile)(program, args, { timeout: answerMs })
    first.child.stdin?.end()
    await first
    const moved = stack.move()
    return {
      environment: at.environment,
      image,
      run,
      async beside() {
        const running = await at.docker.listContainers({ filters: { ancestor: [image] } })
        return running.flatMap(({ Id }) => processesWith(Id))
      },
      own: () => ('folder' in at ? processesWith(`${at.folder as string}/`) : []),
      [Symbol.asyncDispose]: () => moved.disposeAsync(),
    }
  } catch (error) {
    const needed = canStartEngine ? 'dockerd of its own' : 'root and dockerd, or an engine that answers'
    return {
      absent: `it needs ${needed}, and the docker client: ${reasonOf(error)}`,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }
}

async function anybodys(): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack()
  const environment = { DOCKER_HOST: process.env['DOCKER_HOST'] ?? usual }
  const socketPath = environment.DOCKER_HOST.replace(/^unix:\/\//, '')
  const docker = new Docker({ socketPath, timeout: answerMs })
  await docker.ping()
  const engine = stack.use(await openEngine(findEndpoint(environment), environment))
  const moved = stack.move()
  return { engine, environment, docker, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}
