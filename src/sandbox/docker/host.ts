// What one daemon has of its container engine: connected when the first launch needs it, judged once, taken down with the daemon.
import { rm } from 'node:fs/promises'
import { hostname, release } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { late } from '../../lib/late.ts'
import { SallyportError } from '../../errors.ts'
import { unlessAborted } from '../../lib/deadline.ts'
import type { DaemonId } from '../../lib/ids.ts'
import type { Logger } from '../../lib/logger.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import { bootId } from '../daemon-mark.ts'
import { presentProcMasks } from '../bubblewrap/masks.ts'
import type { EnforcedBy, EnforcedLimits } from '../driver.ts'
import type { GatePlan } from '../gate.ts'
import { findMount } from '../mounts/mount-source.ts'
import type { Limits, Mount, SandboxSpec } from '../spec.ts'
import { containerName, containerPlan, labels } from './container.ts'
import type { DockerPlan } from './driver.ts'
import { describeEndpoint, type Endpoint, findEndpoint } from './endpoint.ts'
import type { EngineInfo } from './answers.ts'
import type { Engine } from './engine.ts'
import { engineFilter } from './filter.ts'
import { emptyRoot } from './empty-root.ts'
import { gvisorLimits, isGvisor, judgeGvisor } from './gvisor.ts'
import type { ImagePin } from './image-pin.ts'
import { isStillMaking, writingDown } from './making.ts'
import { makeDaemonFolder, markFile, removeOf } from './janitor.ts'
import { type OwnedEngine, requireSameFiles } from './look.ts'
import { targetJudge } from './target-judge.ts'
import { EngineWatch } from './watch.ts'

const engineClient = late(() => import('./engine.ts'), ['dockerode'])

/** How long a removal that was owed may take, and how long until it is tried again, ms. */
const owedMs = 2_000
/** How long the end of a daemon waits for each answer of an engine that is asked what is left; over ssh each needs a session of its own, ms */
const takeDownMs = { unix: 3_000, tcp: 3_000, ssh: 10_000 }

export interface DockerHostOptions {
  readonly daemon: DaemonId
  readonly stateDirectory: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly initPath: string
  readonly log: Logger
  /** Gives up the connecting; what the engine still has then is for the next daemon */
  readonly signal: AbortSignal
}

/** The part of a plan that does not follow from the spec and the engine. */
export type DockerPlanParts = GatePlan & Pick<DockerPlan, 'filter' | 'enforcedBy' | 'log'>

/** What a server chose of the engine. */
export interface DockerChoice {
  readonly runtime: string | null
  /** Whose root the container has; null for an empty one, in which files of this machine are mounted */
  readonly image: Pick<ImagePin, 'reference' | 'id' | 'volumes' | 'labels' | 'variables'> | null
}

export interface DockerHost extends AsyncDisposable, OwnedEngine {
  readonly info: EngineInfo
  plan(
    parts: DockerPlanParts,
    choice: DockerChoice,
    waiting: { readonly signal: AbortSignal },
  ): Promise<DockerPlan>
}

/**
 * Connects to the engine and looks whether it can hold what a sandbox needs.
 *
 * Throws ERR_ENGINE_… where there is none, and ERR_SANDBOX_UNENFORCEABLE by the control's name where it is elsewhere, or maps
 * users, or has no filters. Disposing removes what containers are left; the sandboxes must have ended before.
 */
export const openDockerHost = async (options: DockerHostOptions): Promise<DockerHost> => {
  const { daemon, stateDirectory, environment, initPath, log, signal } = options
  const endpoint = findEndpoint(environment)
  const { openEngine } = await engineClient()
  const connected = await openEngine(endpoint, environment)
  try {
    const info = await connected.info({ signal })
    judgePlace(endpoint, info)
    judgeEngine(info)
    const folder = await makeDaemonFolder(stateDirectory, daemon, endpoint)
    const engine = writingDown(connected, folder)
    await unlessAborted(requireSameFiles({ engine, daemon }, [join(folder, markFile), initPath]), signal)
    const watch = new EngineWatch(engine, `${labels.daemon}=${daemon}`)
    const owed = new Set<string>()
    const judgeTargets = targetJudge({ engine, daemon })
    const procMasks = await presentProcMasks()
    const boot = bootId()
    const settle = async (signal: AbortSignal): Promise<void> => {
      for (const id of owed)
        if (
          await engine.remove(id, { ms: owedMs, signal }).then(
            () => true,
            () => false,
          )
        )
          owed.delete(id)
    }
    let retry: NodeJS.Timeout | null = null
    const settleAgain = async (): Promise<void> => {
      await settle(signal)
      retry = null
      if (owed.size > 0 && !signal.aborted) settleLater()
    }
    // Nobody may ever launch again: what is owed is tried until the engine answers.
    const settleLater = (): void => {
      retry ??= setTimeout(() => void settleAgain(), owedMs).unref()
    }
    return {
      engine,
      daemon,
      info,
      async plan(parts, { runtime, image }, { signal }) {
        const { spec } = parts
        judgeRuntime(spec.server, runtime, info)
        const inGvisor = isGvisor(runtime, info)
        const isRemapped = hasOption(info, 'userns')
        if (inGvisor) judgeGvisor(runtime ?? info.DefaultRuntime, info, spec.network.mode)
        await settle(signal)
        signal.throwIfAborted()
        if (image !== null) await judgeTargets(image, spec, { signal })
        const imageId = image?.id ?? (await emptyRoot(engine, { signal }))
        return {
          ...parts,
          innerLimits: inGvisor ? gvisorLimits(parts.innerLimits) : parts.innerLimits,
          isGvisor: inGvisor,
          isRemapped,
          initPath,
          driver: 'docker',
          engine,
          watch,
          name: containerName(spec, daemon),
          folder: join(folder, spec.instance),
          owe(id) {
            owed.add(id)
            settleLater()
          },
          container: ({ control, files }) =>
            containerPlan(spec, {
              daemon,
              boot,
              imageId,
              volumes: image?.volumes ?? [],
              imageLabels: image?.labels ?? [],
              imageVariables: image?.variables ?? [],
              runtime,
              isGvisor: inGvisor,
              isRemapped,
              initPath,
              control,
              files,
              filter: engineFilter(spec.syscalls, spec.network.mode),
              procMasks,
              processors: info.NCPU,
            }),
        }
      },
      async [Symbol.asyncDispose]() {
        if (retry !== null) clearTimeout(retry)
        watch[Symbol.dispose]()
        await takeDown(engine, daemon, folder, { ms: takeDownMs[endpoint.kind], log })
        engine[Symbol.dispose]()
      },
    }
  } catch (error) {
    connected[Symbol.dispose]()
    throw error
  }
}

// A launch that was given up while the engine was slow may have left one that nobody knows by its id.
const takeDown = async (
  engine: Engine,
  daemon: DaemonId,
  folder: string,
  { ms, log }: { readonly ms: number; readonly log: Logger },
): Promise<void> => {
  try {
    await removeOf(engine, { daemon }, folder, { ms })
    if (!(await isStillMaking(folder))) await rm(folder, { recursive: true, force: true })
  } catch (error) {
    // The folder says to the next daemon what there is to remove.
    log.warn({ error }, 'containers may be left, since the engine does not answer')
  }
}

/**
 * However an engine is reached, it has to be on this machine. Throws ERR_SANDBOX_UNENFORCEABLE where one that is reached over a
 * network bears another machine's name; whether it has this one's files is looked at afterwards.
 */
export const judgePlace = (endpoint: Endpoint, { Name }: Pick<EngineInfo, 'Name'>): void => {
  if (endpoint.kind === 'unix' || Name === hostname()) return
  throw unenforceable(
    'a local engine',
    `the engine at ${describeEndpoint(endpoint)} is elsewhere, on ${Name}: mounts, init and the way out are files and sockets of this machine; ` +
      `run sallyport on that machine, and reach it by ssh`,
  )
}

/** The kernel that judges mounts, pids and sockets has to be this one. */
export const judgeEngine = (info: EngineInfo): void => {
  if (info.OSType !== 'linux')
    throw unenforceable(
      'a local engine',
      `the engine runs ${info.OSType} containers; use one that runs linux`,
    )
  if (info.KernelVersion !== release())
    throw unenforceable(
      'a local engine',
      `the engine runs on kernel ${info.KernelVersion} and this is ${release()}: it is in a machine of its own, without this one's files; run sallyport in there`,
    )
  if (!hasOption(info, 'seccomp'))
    throw unenforceable(
      'seccomp',
      'the engine has no filters of system calls; use one that is built with seccomp',
    )
  if (hasOption(info, 'rootless'))
    throw unenforceable(
      'user mapping',
      'the engine is rootless and maps users, so that a mount would show other owners than were judged; use an engine of root, or driver: bubblewrap, which needs none',
    )
}

const hasOption = ({ SecurityOptions }: Pick<EngineInfo, 'SecurityOptions'>, name: string): boolean =>
  (SecurityOptions ?? []).some((option) => option.split(',').includes(`name=${name}`))

const judgeRuntime = (server: string, runtime: string | null, { Runtimes }: EngineInfo): void => {
  if (runtime === null || Object.hasOwn(Runtimes, runtime)) return
  throw unenforceable(
    'runtime',
    `server ${server} names runtime ${runtime}, and the engine has ${Object.keys(Runtimes).join(', ')}; add it to the engine’s daemon.json, or correct the entry`,
  )
}

const unenforceable = (control: string, message: string): SallyportError =>
  new SallyportError('ERR_SANDBOX_UNENFORCEABLE', message, { control })

/** Says what holds each limit in a container. Throws ERR_SANDBOX_UNENFORCEABLE for the first that is required and that this engine cannot hold. */
export const engineEnforcement = ({ enforcement }: Limits, info: EngineInfo): EnforcedLimits => {
  const hold = (limit: 'memory' | 'pids' | 'cpu', can: boolean): EnforcedBy => {
    if (can) return 'engine'
    if (enforcement[limit] === 'best-effort') return 'none'
    throw unenforceable(
      limit,
      `limits.${limit} (required) cannot be held by this engine, which says so itself; mend its control groups, or set limits.enforcement.${limit}: best-effort`,
    )
  }
  return {
    memory: hold('memory', info.MemoryLimit),
    pids: hold('pids', info.PidsLimit),
    cpu: hold('cpu', info.CpuCfsQuota),
    files: 'rlimit',
    tmp: 'tmpfs',
  }
}

/** The spec with each link of the root as a mount of what it leads to: an empty root can hold no link. */
export const withMountedLinks = async (spec: SandboxSpec): Promise<SandboxSpec> => {
  const shown: Mount[] = []
  for (const { path, text } of spec.links) {
    const target = join(dirname(path), text)
    const holder = spec.mounts.find((mount) => isWithin(target, mount.target))
    if (holder === undefined) continue
    const mount = await findMount({
      source: join(holder.source, relative(holder.target, target)),
      target: path,
      access: 'read',
      reason: `the host has it as a link to ${text}`,
      origin: 'runtime',
    })
    if (mount !== null) shown.push(mount)
  }
  return { ...spec, links: [], mounts: [...shown, ...spec.mounts] }
}
