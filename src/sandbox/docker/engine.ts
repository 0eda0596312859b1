// The container engine as the driver sees it: few requests, each with a deadline, each failure with a code of ours.
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { createInterface } from 'node:readline'
import type { Duplex, Readable } from 'node:stream'
import type Dockerode from 'dockerode'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import { errnoOf } from '../../lib/missing.ts'
import { describeEndpoint, type Endpoint } from './endpoint.ts'
import { sshAgent } from './ssh-agent.ts'

/** What a container is to be, in the engine's own words. */
export type ContainerPlan = Dockerode.ContainerCreateOptions
/** What the engine says about a container. */
export type ContainerFacts = Dockerode.ContainerInspectInfo
/** What the engine says about a container in a list. */
export type ContainerEntry = Dockerode.ContainerInfo
/** What the engine says about an image. */
export type ImageFacts = Dockerode.ImageInspectInfo

/** What `GET /info` says, as far as anything here depends on it. */
export interface EngineInfo {
  readonly ID: string
  readonly Name: string
  readonly ServerVersion: string
  readonly KernelVersion: string
  readonly OperatingSystem: string
  readonly OSType: string
  readonly Architecture: string
  readonly Driver: string
  readonly DockerRootDir: string
  readonly CgroupDriver: string
  /** `1` or `2`; engines before 20.10 don't say */
  readonly CgroupVersion?: string
  readonly SecurityOptions: readonly string[] | null
  readonly Runtimes: Readonly<Record<string, unknown>>
  readonly DefaultRuntime: string
}

/** One line of a pull's progress, as the engine streams it. */
export interface PullProgress {
  readonly status?: string
  readonly id?: string
  readonly error?: string
  readonly progressDetail?: { readonly current?: number; readonly total?: number }
}

/** A limit on one request; `ms` has a default that fits the request. */
export interface Waiting {
  readonly signal?: AbortSignal
  readonly ms?: number
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
  /** The container's three streams, multiplexed, raw from the socket; to be had before `start` so that no byte is lost */
  attach(id: string, waiting?: Waiting): Promise<Duplex>
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
  image(reference: string, waiting?: Waiting): Promise<ImageFacts | null>
  /** Fetches an image from its registry; resolves when it is there. `ms` limits silence, not the whole */
  pull(reference: string, onProgress: (line: PullProgress) => void, waiting?: Waiting): Promise<void>
}

const quickMs = 10_000
/** Creating and removing wait for the disk, and for the engine's locks while many do so */
const slowMs = 60_000
const foreverMs = 2 ** 31 - 1

/**
 * Connects to nothing yet: every request has a connection of its own, so that an engine may restart between two.
 *
 * dockerode is loaded here, since a daemon without containers should not hold it in memory.
 */
export const openEngine = async (
  endpoint: Endpoint,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Engine> => {
  const { default: Docker } = await import('dockerode')
  const agent = agentFor(endpoint, environment)
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
        const { id } = await docker.createContainer({ ...plan, name, abortSignal })
        return id
      }),
    attach: (id, waiting) =>
      ask('attach', quickMs, waiting, (ended) => {
        const streams = { stream: true, hijack: true, stdin: true, stdout: true, stderr: true }
        return closing(docker.getContainer(id).attach(streams) as Promise<Duplex>, ended)
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
    image: (reference, waiting) =>
      ask('image', quickMs, waiting, (signal) =>
        get<ImageFacts>(docker, `/images/${reference}/json`, signal),
      ).catch(orNull),
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

// The promise is raced as well as aborted: an answer that stops half-way would else never settle it.
const asking =
  (endpoint: Endpoint): Ask =>
  async (what, usualMs, waiting, request) => {
    const ms = waiting?.ms ?? usualMs
    const ended = new AbortController()
    try {
      return await within(request(ended.signal), ms, () => late(endpoint, what, ms), waiting?.signal)
    } catch (error) {
      if (waiting?.signal?.aborted === true) throw waiting.signal.reason
      throw failure(endpoint, what, error)
    } finally {
      ended.abort()
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
  waiting: Waiting | undefined,
): Promise<void> => {
  const open = async (): Promise<Readable> => (await docker.pull(reference)) as Readable
  const stream = await ask('pull', slowMs, waiting, (ended) => closing(open(), ended))
  const lines = createInterface({ input: stream })[Symbol.asyncIterator]()
  try {
    for (;;) {
      const line = await ask('pull', slowMs, waiting, () => lines.next())
      if (line.done === true) return
      const said = JSON.parse(line.value) as PullProgress
      if (said.error !== undefined) throw refusal('pull', said.error, 0)
      onProgress(said)
    }
  } finally {
    stream.destroy()
  }
}

// A stream that comes after its request was given up is closed, since nobody else will.
const closing = async <T extends Duplex | Readable>(opening: Promise<T>, ended: AbortSignal): Promise<T> => {
  const stream = await opening
  if (ended.aborted) stream.destroy()
  return stream
}

const agentFor = (
  endpoint: Endpoint,
  environment: Readonly<Record<string, string | undefined>>,
): Agent | TlsAgent => {
  if (endpoint.kind === 'ssh') return sshAgent(endpoint, environment)
  return endpoint.kind === 'tcp' && endpoint.tls !== null ? new TlsAgent() : new Agent()
}

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

/** The engine's HTTP status in a failure of `Engine`, 0 where it gave none. */
export const statusOf = (error: unknown): number => {
  const status = error instanceof SallyportError ? error.details['status'] : null
  return typeof status === 'number' ? status : 0
}

const failure = (endpoint: Endpoint, what: string, error: unknown): SallyportError => {
  if (error instanceof SallyportError) return error
  const { statusCode } = error as { statusCode?: unknown }
  if (typeof statusCode === 'number') return refusal(what, wordsOf(error), statusCode)
  const at = describeEndpoint(endpoint)
  return new SallyportError(
    'ERR_ENGINE_UNREACHABLE',
    `the container engine at ${at} (${endpoint.from}) does not answer: ${errnoOf(error) ?? wordsOf(error)}; ${mendOf(error)}`,
    { endpoint: at, from: endpoint.from, request: what },
    { cause: error },
  )
}

const mendOf = (error: unknown): string =>
  errnoOf(error) === 'EACCES'
    ? 'the daemon’s user may not use it: add that user to the group of the socket, which makes it root on this machine, or use a rootless engine'
    : 'start it, or name another with DOCKER_HOST'

// dockerode puts the status and its meaning before the engine's own words.
const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^\(HTTP code \d+\) .*? - /, '')

const refusal = (what: string, said: string, status: number): SallyportError =>
  new SallyportError(
    'ERR_ENGINE_REFUSED',
    `the container engine refused to ${what}: ${said.trim()}; mend what it names`,
    { request: what, status },
  )

const late = (endpoint: Endpoint | null, what: string, ms: number): SallyportError => {
  const at = endpoint === null ? '' : ` at ${describeEndpoint(endpoint)}`
  return new SallyportError(
    'ERR_ENGINE_TIMEOUT',
    `the container engine${at} did not answer \`${what}\` within ${ms} ms; look at its log, or restart it`,
    { request: what, ms },
  )
}
