// The container engine as the driver sees it: few requests, each with a deadline, each failure with a code of ours.
import type { Agent, IncomingMessage } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { type Duplex, Readable } from 'node:stream'
import { inspect } from 'node:util'
import type Dockerode from 'dockerode'
import { within } from '../../lib/deadline.ts'
import { late as loadedLate } from '../../lib/late.ts'
import { http } from '../../lib/node-http.ts'
import { parseJson } from '../../lib/parse-json.ts'
import {
  type EngineInfo,
  type FileStat,
  type StreamName,
  type ContainerEvent,
  type PullProgress,
  type Waiting,
  eventIn,
  statIn,
} from './answers.ts'
import { findInitBinary } from '../init-binary.ts'
import type { Endpoint } from './endpoint.ts'
import { failure, late, refusal, statusOf } from './engine-failure.ts'
import type { Login } from './login.ts'
import { sshAgent } from './ssh-agent.ts'

/** What a container is to be, in the engine's own words. */
export type ContainerPlan = Omit<Dockerode.ContainerCreateOptions, 'HostConfig'> & {
  readonly HostConfig: Dockerode.HostConfig & { readonly CgroupnsMode?: 'private' | 'host' }
}
/** What the engine says about a container. */
export type ContainerFacts = Dockerode.ContainerInspectInfo
/** What the engine says about a container in a list. */
export type ContainerEntry = Dockerode.ContainerInfo
/** What the engine says about an image. */
export type ImageFacts = Omit<Dockerode.ImageInspectInfo, 'Config'> & {
  /** Null where whoever built it wrote none */
  readonly Config: Dockerode.ImageInspectInfo['Config'] | null
}

/**
 * A connected engine. Requests reject with ERR_ENGINE_UNREACHABLE, ERR_ENGINE_TIMEOUT or ERR_ENGINE_REFUSED (whose
 * details hold the engine's `status`), or with the signal's reason. What is not there is null, never an error.
 */
export interface Engine extends Disposable {
  readonly endpoint: Endpoint
  info(waiting?: Waiting): Promise<EngineInfo>
  /** Returns the container's id; nothing of it runs */
  create(name: string, plan: ContainerPlan, waiting?: Waiting): Promise<string>
  /**
   * One of a container's streams, raw from the socket: output comes in frames of an eight-byte head. To be had before
   * `start`, so that no byte is lost. Each has a connection of its own: one that nobody reads holds no other up.
   */
  attach(id: string, stream: StreamName, waiting?: Waiting): Promise<Duplex>
  start(id: string, waiting?: Waiting): Promise<void>
  /** Sends a signal to the container's first process; a container that is gone or does not run is no error */
  kill(id: string, signal: NodeJS.Signals, waiting?: Waiting): Promise<void>
  /** Resolves with the exit code once the container does not run any more; waits for ever unless told otherwise */
  wait(id: string, waiting?: Waiting): Promise<number>
  /** Removes a container and its anonymous volumes, killing it where it runs; one that is gone is no error */
  remove(id: string, waiting?: Waiting): Promise<void>
  inspect(id: string, waiting?: Waiting): Promise<ContainerFacts | null>
  /** Containers in any state that carry every one of the labels, each `KEY` or `KEY=VALUE` */
  list(labels: readonly string[], waiting?: Waiting): Promise<readonly ContainerEntry[]>
  /** Tells of containers that carry the label from now on, until the stream ends or is destroyed */
  events(label: string, tell: (event: ContainerEvent) => void, waiting?: Waiting): Promise<Readable>
  image(reference: string, waiting?: Waiting): Promise<ImageFacts | null>
  /** A file of a container, whether it runs or not */
  stat(id: string, path: string, waiting?: Waiting): Promise<FileStat | null>
  /** Makes an image of a tar archive, under the name */
  importImage(archive: Buffer, repository: string, waiting?: Waiting): Promise<void>
  /** Fetches an image from its registry; resolves when it is there. `ms` limits silence, not the whole */
  pull(
    reference: string,
    onProgress: (line: PullProgress) => void,
    waiting?: Waiting & { readonly login?: Login | null },
  ): Promise<void>
}

const quickMs = 10_000
/** Creating and removing wait for the disk, and for the engine's locks while many do so */
const slowMs = 60_000
const foreverMs = 2 ** 31 - 1

const require = createRequire(import.meta.url)
const dockerode = loadedLate(async () => require('dockerode') as typeof Dockerode)

/**
 * Connects to nothing yet: every request has a connection of its own, so that an engine may restart between two.
 *
 * dockerode is loaded here, since a daemon without containers should not hold it in memory; and not by `import`, which keeps
 * for good that descriptors had run out when it was tried.
 */
export const openEngine = async (
  endpoint: Endpoint,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Engine> => {
  const Docker = await dockerode()
  const agent = unseen(await agentFor(endpoint, environment))
  const docker = new Docker(connectionOptions(endpoint, agent))
  const ask = asking(endpoint)
  const quiet = (error: unknown, ...statuses: readonly number[]): void => {
    if (!statuses.includes(statusOf(error))) throw error
  }
  return {
    endpoint,
    info: (waiting) => ask('info', quickMs, waiting, (signal) => get<EngineInfo>(docker, '/info', signal)),
    create: (name, plan, waiting) =>
      ask('create', slowMs, waiting, async (abortSignal) => {
        // Said apart, since dockerode would put the whole plan into the address as well.
        const asked = { _query: { name }, _body: plan, abortSignal } as Dockerode.ContainerCreateOptions
        const { id } = await docker.createContainer(asked)
        return id
      }),
    attach: (id, stream, waiting) =>
      ask('attach', quickMs, waiting, (abortSignal) => {
        const streams = { stdin: false, stdout: false, stderr: false, [stream]: true }
        const options = { stream: true, hijack: true, ...streams, abortSignal }
        return closing(docker.getContainer(id).attach(options) as Promise<Duplex>, abortSignal)
      }),
    start: (id, waiting) =>
      ask('start', slowMs, waiting, async (abortSignal) => {
        await docker.getContainer(id).start({ abortSignal })
      }),
    kill: (id, signal, waiting) =>
      ask('kill', quickMs, waiting, async (abortSignal) => {
        await docker.getContainer(id).kill({ signal, abortSignal })
      }).catch((error: unknown) => quiet(error, 404, 409)),
    wait: (id, waiting) =>
      ask('wait', foreverMs, waiting, async (abortSignal) => {
        const { StatusCode } = (await docker.getContainer(id).wait({ abortSignal })) as { StatusCode: number }
        return StatusCode
      }),
    remove: (id, waiting) =>
      ask('remove', slowMs, waiting, async (abortSignal) => {
        await docker.getContainer(id).remove({ force: true, v: true, abortSignal })
      }).catch((error: unknown) => quiet(error, 404)),
    inspect: (id, waiting) =>
      ask('inspect', quickMs, waiting, (abortSignal) =>
        docker.getContainer(id).inspect({ abortSignal }),
      ).catch(orNull),
    list: (labels, waiting) =>
      ask('list', quickMs, waiting, (abortSignal) =>
        docker.listContainers({ all: true, filters: { label: [...labels] }, abortSignal }),
      ),
    events: (label, tell, waiting) =>
      ask('events', quickMs, waiting, async (abortSignal) => {
        const filters = JSON.stringify({ type: ['container'], label: [label] })
        const opening = docker.getEvents({ filters, abortSignal }) as Promise<Readable>
        const stream = await closing(opening, abortSignal)
        // It passes its input's errors on, which nobody but the stream's owner has to hear.
        createInterface({ input: stream })
          .on('line', (line) => tell(eventIn(line)))
          .on('error', () => {})
        return stream
      }),
    image: (reference, waiting) =>
      ask('image', quickMs, waiting, (signal) =>
        get<ImageFacts>(docker, `/images/${reference}/json`, signal),
      ).catch(orNull),
    stat: (id, path, waiting) =>
      ask('stat', quickMs, waiting, async (abortSignal) => {
        const answer = (await docker.getContainer(id).infoArchive({ path, abortSignal })) as IncomingMessage
        answer.resume()
        return statIn(answer)
      }).catch(orNull),
    importImage: (archive, repo, waiting) =>
      ask('import', slowMs, waiting, async (abortSignal) => {
        const stream = (await docker.importImage(Readable.from([archive]), { repo, abortSignal })) as Readable
        for await (const _ of stream);
      }),
    pull: (reference, onProgress, waiting) => pull(docker, ask, reference, onProgress, waiting),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

type Ask = <T>(
  what: string,
  usualMs: number,
  waiting: Waiting | undefined,
  request: (signal: AbortSignal) => Promise<T>,
) => Promise<T>

// The promise is raced as well as aborted: an answer that stops half-way would else never settle it. What a request has led
// to is aborted where it failed only: the streams of one that did not go on after it.
const asking =
  (endpoint: Endpoint): Ask =>
  async (what, usualMs, waiting, request) => {
    const ms = waiting?.ms ?? usualMs
    waiting?.signal?.throwIfAborted()
    const givenUp = new AbortController()
    try {
      return await within(request(givenUp.signal), ms, () => late(endpoint, what, ms), waiting?.signal)
    } catch (error) {
      givenUp.abort()
      if (waiting?.signal?.aborted === true) throw waiting.signal.reason
      throw failure(endpoint, what, error)
    }
  }

// What dockerode would ask just so, but without a way to give it up.
const get = <T>(docker: Dockerode, path: string, abortSignal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const request = { path, method: 'GET', abortSignal, statusCodes: { 200: true, 404: 'not found' } }
    docker.modem.dial(request, (error: Error | null, answer: unknown) =>
      error === null ? resolve(answer as T) : reject(error),
    )
  })

const pull = async (
  docker: Dockerode,
  ask: Ask,
  reference: string,
  onProgress: (line: PullProgress) => void,
  waiting: (Waiting & { readonly login?: Login | null }) | undefined,
): Promise<void> => {
  const login = waiting?.login ?? null
  const options = login === null ? {} : { authconfig: login }
  const open = async (abortSignal: AbortSignal): Promise<Readable> =>
    (await docker.pull(reference, { ...options, abortSignal })) as Readable
  const stream = await ask('pull', slowMs, waiting, (givenUp) => closing(open(givenUp), givenUp))
  const lines = createInterface({ input: stream })[Symbol.asyncIterator]()
  try {
    for (;;) {
      const line = await ask('pull', slowMs, waiting, () => lines.next())
      if (line.done === true) return
      const said = parseJson(line.value) as PullProgress
      if (said.error !== undefined) throw refusal('pull', said.error, 0)
      onProgress(said)
    }
  } finally {
    stream.destroy()
  }
}

// A stream that comes after its request was given up is closed, since nobody else will.
const closing = async <T extends Duplex | Readable>(
  opening: Promise<T>,
  givenUp: AbortSignal,
): Promise<T> => {
  const stream = await opening
  if (givenUp.aborted) stream.destroy()
  return stream
}

const agentFor = async (
  endpoint: Endpoint,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Agent | TlsAgent> => {
  if (endpoint.kind === 'ssh') return sshAgent(endpoint, environment, await findInitBinary())
  return endpoint.kind === 'tcp' && endpoint.tls !== null ? new TlsAgent() : new http.Agent()
}

// dockerode writes each request out for a log that nobody reads, and would write every open connection with it.
const unseen = <T extends Agent | TlsAgent>(agent: T): T =>
  Object.defineProperty(agent, inspect.custom, { value: () => 'agent' })

// Everything is said: what is left out, dockerode would take from the process's own environment.
const connectionOptions = (endpoint: Endpoint, agent: Agent): Dockerode.DockerOptions => {
  const nothing = {
    ca: undefined,
    cert: undefined,
    key: undefined,
    timeout: undefined,
    pathPrefix: '/',
    agent,
  }
  const said =
    endpoint.kind === 'unix'
      ? { ...nothing, host: undefined, port: undefined, socketPath: endpoint.socketPath, protocol: 'http' }
      : endpoint.kind === 'ssh'
        ? { ...nothing, host: 'engine.invalid', port: 80, protocol: 'http' }
        : {
            ...nothing,
            host: endpoint.host,
            port: endpoint.port,
            protocol: endpoint.tls === null ? 'http' : 'https',
            ca: endpoint.tls?.ca ?? undefined,
            cert: endpoint.tls?.cert ?? undefined,
            key: endpoint.tls?.key ?? undefined,
          }
  return said as Dockerode.DockerOptions
}

const orNull = (error: unknown): null => {
  if (statusOf(error) === 404) return null
  throw error
}
