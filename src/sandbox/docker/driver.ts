// The docker driver: has the engine make a container around init, checks what init found inside, and opens the gate.
//
//   daemon ── create, attach, start ──> engine ──> runtime == execve ==> sallyport-init container == fork ==> server
//     |                                   |                                   |                                 |
//     |<======= control channel, over a socket that is mounted: ready, go, started, exited =====>|              |
//     |<== stdin, stdout, stderr: a connection each ==>|<============================== pipes ====================>|
import type { Duplex, Readable } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { Order } from '../control/control.ts'
import { type GatedSandbox, openGate, reachGate } from '../gate.ts'
import { Contained, type ContainedPlan, lastOf, setupFailure } from './contained.ts'
import { innerUser } from './container.ts'
import type { StreamName } from './answers.ts'
import type { ContainerPlan, Engine } from './engine.ts'
import { type InstanceFolder, makeInstanceFolder } from './folder.ts'
import { unframed } from './unframe.ts'
import { requireSameSources } from './gvisor.ts'
import type { EngineWatch } from './watch.ts'

/** How long the engine may take from a container's start to init's first word, ms. */
const setupMs = 20_000
/** How long a launch that failed waits for the engine to remove what it made; one that hangs is owed the rest, ms. */
const removedMs = 2_000

/** A launch as the driver takes it: nothing is left to decide. */
export interface DockerPlan extends ContainedPlan {
  readonly driver: 'docker'
  readonly engine: Engine
  readonly watch: EngineWatch
  readonly name: string
  /** What the engine is asked for, once the folder's files are there */
  readonly container: (folder: Pick<InstanceFolder, 'control' | 'files'>) => ContainerPlan
  /** Where the folder is made */
  readonly folder: string
  /** The exact filter of system calls, which init installs */
  readonly filter: Uint8Array
  readonly owe: (id: string) => void
  /** The file that PID 1 has to be */
  readonly initPath: string
  /** Whether gVisor stands in for the kernel in there */
  readonly isGvisor: boolean
  /** Whether the engine maps users, and is asked not to */
  readonly isRemapped: boolean
}

/**
 * Builds the sandbox and returns it waiting at its gate, every mount proven to be what the plan opened.
 *
 * Throws ERR_SANDBOX_SETUP with what init said, or as the engine does; nothing is left then.
 */
export const confineInContainer = async (
  plan: DockerPlan,
  { signal }: { readonly signal: AbortSignal },
): Promise<GatedSandbox> => {
  const contained = await start(plan, signal)
  try {
    await contained.identifyInit({ signal })
    if (!plan.isGvisor) await contained.requireInit(plan.initPath)
    contained.channel.send(...containerOrders(plan))
    const look = plan.isGvisor ? () => requireSameSources(plan.spec) : null
    await reachGate(contained, plan.spec, { signal, look })
  } catch (error) {
    await contained[Symbol.asyncDispose]()
    throw error
  }
  return {
    initPid: contained.initPid,
    ended: contained.ended,
    isLost: () => contained.isLost,
    isStopped: () => contained.isStopped,
    open: ({ signal }) => openGate(contained, plan, { signal }),
    [Symbol.asyncDispose]: () => contained[Symbol.asyncDispose](),
  }
}

// Streams first, then the start: what init says, and what the server says at once, is all heard.
const start = async (plan: DockerPlan, signal: AbortSignal): Promise<Contained> => {
  const { engine, watch, spec, owe } = plan
  await watch.listen({ signal })
  const folder = await makeInstanceFolder(plan.folder, spec.files, spec.hostUid)
  const opened: Duplex[] = []
  let hasFailed = false
  try {
    const id = await engine.create(plan.name, plan.container(folder), { signal })
    const attach = async (stream: StreamName): Promise<Duplex> => {
      const connection = await engine.attach(id, stream, { signal })
      opened.push(connection.on('error', () => {}))
      if (hasFailed) connection.destroy()
      return connection
    }
    const [stdin, out, err] = await Promise.all([attach('stdin'), attach('stdout'), attach('stderr')])
    const [stdout, stderr] = [unframed(out, 'stdout'), unframed(err, 'stderr')]
    await engine.start(id, { signal })
    const control = await connectionOf(folder, { err, stderr }, spec.server, signal)
    const letGo = (): Promise<void> => Promise.resolve(folder[Symbol.asyncDispose]())
    return new Contained({ engine, watch, id, control, stdin, stdout, stderr, letGo, owe }, plan)
  } catch (error) {
    hasFailed = true
    for (const connection of opened) connection.destroy()
    await engine.remove(plan.name, { ms: removedMs }).catch((failed: unknown) => {
      owe(plan.name)
      plan.log.error(
        { container: plan.name, error: failed },
        'the engine does not let go of a container that failed',
      )
    })
    await folder[Symbol.asyncDispose]()
    throw error
  }
}

// Either init connects, or its container ends and has said why.
const connectionOf = async (
  { connected }: InstanceFolder,
  { err, stderr }: { readonly err: Duplex; readonly stderr: Readable },
  server: string,
  signal: AbortSignal,
): Promise<Duplex> => {
  const ended = new Promise<null>((resolve) => err.once('close', () => resolve(null)))
  const control = await within(Promise.race([connected, ended]), setupMs, () => tooLate(server), signal)
  if (control === null) throw setupFailure(server, await lastOf(stderr))
  return control
}

const containerOrders = ({ filter }: DockerPlan): Order[] => [
  { type: 'data', bytes: filter },
  { type: 'ids', ...innerUser },
  { type: 'exec' },
]

const tooLate = (server: string): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_SETUP',
    `init did not answer from the container of ${server} within ${setupMs} ms; see whether the engine shares this machine’s file system`,
    { step: 'confine', server, timeoutMs: setupMs },
  )
