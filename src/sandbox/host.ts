// What one daemon has for all its launches: found, pinned and made once, taken down with the daemon.
import { SallyportError } from '../errors.ts'
import { accountGroup } from '../lib/account-group.ts'
import type { Logger } from '../lib/logger.ts'
import type { DaemonId } from '../lib/ids.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import type { BubblewrapTools } from './bubblewrap/plan.ts'
import { Launchers } from './bubblewrap/launchers.ts'
import { presentProcMasks } from './bubblewrap/masks.ts'
import { type CgroupRoot, createCgroups, groupDirectories } from './cgroup/cgroup.ts'
import { forgetGroups, recordGroups, removeLeftovers } from './cgroup/leftovers.ts'
import { requireInit, requireSandbox } from './fingerprint/diagnose.ts'
import { type DockerHost, openDockerHost } from './docker/host.ts'
import { keepSweeping } from './docker/janitor.ts'
import type { LimitSupport } from './limits/enforcement.ts'
import { type Fingerprint, hostFingerprint, withUnsettledTried } from './fingerprint/fingerprint.ts'
import type { PinFile } from './program/pinned-file.ts'
import { type RecordImage, Registrations } from './registrations.ts'
import type { HostFacts } from './resolve.ts'
import { compileSeccomp } from './seccomp.ts'
import type { Network, SyscallPolicy } from './spec.ts'
import type { Arch } from './syscalls.ts'

/** What a launch takes from the daemon. */
export interface LaunchHost extends AsyncDisposable {
  readonly fingerprint: Fingerprint
  readonly limits: LimitSupport
  readonly cgroups: CgroupRoot
  /** What a sandbox of bubblewrap is made with. Throws ERR_SANDBOX_UNENFORCEABLE where this machine was found to make none */
  tools(found: Fingerprint): BubblewrapTools
  /** Where the first process of a sandbox of bubblewrap comes from */
  readonly launchers: Launchers
  readonly log: Logger
  /** The daemon's ids, own folders, homes and environment, and the uids of its sandboxes that live */
  readonly facts: HostFacts
  /** The registrations of a config, which last as long as the config does */
  registrationsOf(settings: Settings): Registrations
  /** The compiled filter of a policy, for a sandbox with that network */
  seccompOf(policy: SyscallPolicy, network: Network['mode']): Uint8Array
  /** The container engine, connected by the first who asks. Throws ERR_ENGINE_… and ERR_SANDBOX_UNENFORCEABLE */
  docker(): Promise<DockerHost>
  /** Keeps a uid from being given to another sandbox until the promise settles */
  holdUid(uid: number, until: Promise<unknown>): void
}

export interface LaunchHostOptions {
  readonly daemon: DaemonId
  /** Where the daemon writes down what it owns, for whoever cleans up after it */
  readonly stateDirectory: string
  /** Folders and files of Sallyport's own, which no server may have: runtime, state, config */
  readonly own: readonly string[]
  readonly homes: readonly string[]
  /** The daemon's environment; servers get what profiles pass, and nothing else of it */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** What confines the servers that there are at the start; another is looked at when it is first launched */
  readonly drivers: readonly ServerSettings['driver'][]
  /** Where what the names of images led to is written down; nowhere unless given */
  readonly recordImage?: RecordImage
  /** Reads the programs of every config; each config's are read anew unless given */
  readonly pinFile?: PinFile
  readonly log: Logger
}

/**
 * Finds and makes what launches need, and removes what a daemon that died left behind.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE where this machine lacks what every sandbox needs, or every one of a driver in use. Disposing removes the daemon's
 * control groups; its sandboxes must have ended before.
 */
export const createLaunchHost = async (options: LaunchHostOptions): Promise<LaunchHost> => {
  const { daemon, stateDirectory, own, homes, environment, drivers, log } = options
  const { recordImage = () => Promise.resolve(), pinFile } = options
  const found = await hostFingerprint()
  const { initPath } = requireInit(found)
  // A trial that was late, or short of something, says nothing of the machine, which is busy as it starts
  if (drivers.includes('bubblewrap')) requireSandbox(await withUnsettledTried(found, false))
  const { kernel, cgroups: support } = found
  const procMasks = await presentProcMasks()
  const removed = await removeLeftovers(stateDirectory)
  if (removed.length > 0) log.warn({ removed }, 'removed what a daemon that died left behind')
  const closing = new AbortController()
  const tell = (containers: readonly string[]): void => {
    if (containers.length > 0)
      log.warn({ containers }, 'removed containers that a daemon that died left behind')
  }
  await keepSweeping(stateDirectory, { log, environment, tell, signal: closing.signal })
  recordGroups(stateDirectory, daemon, groupDirectories(support, daemon))
  const cgroups = createCgroups(support, daemon)
  const launchers = new Launchers(initPath)
  if (drivers.includes('bubblewrap')) launchers.prepare()
  const uid = process.getuid?.() ?? -1
  const uidsInUse = new Set<number>()
  const registrations = new WeakMap<Settings, Registrations>()
  const filters = new Map<string, Uint8Array>()
  let docker: Promise<DockerHost> | null = null
  const dockerHost = (): Promise<DockerHost> => {
    docker ??= openDockerHost({
      daemon,
      stateDirectory,
      environment,
      initPath,
      log,
      signal: closing.signal,
    }).catch((error: unknown) => {
      // An engine that is started later is found then.
      docker = null
      throw error
    })
    return docker
  }
  return {
    fingerprint: found,
    limits: {
      cgroups: support,
      nprocPerNamespace: kernel.nprocPerNamespace,
      processTree: kernel.processTree,
    },
    cgroups,
    tools: (tried) => ({ ...requireSandbox(tried), procMasks, isRoot: uid === 0 }),
    launchers,
    log,
    facts: { own, homes, environment, uid, gid: process.getgid?.() ?? -1, groupOf: accountGroup, uidsInUse },
    registrationsOf: (settings) =>
      getOrMake(
        registrations,
        settings,
        () => new Registrations(settings, { uid }, { engine: dockerHost, record: recordImage }, pinFile),
      ),
    seccompOf: (policy, network) =>
      getOrMake(filters, JSON.stringify([policy, network]), () =>
        compileSeccomp(policy, archOf(process.arch), network),
      ),
    docker: dockerHost,
    holdUid(held, until) {
      uidsInUse.add(held)
      void until.finally(() => uidsInUse.delete(held))
    },
    async [Symbol.asyncDispose]() {
      // An engine that does not answer would hold up the end for as long as it is connected to.
      closing.abort(
        new SallyportError(
          'ERR_ENGINE_UNREACHABLE',
          'the daemon ended while it connected to its container engine; start it again',
        ),
      )
      await docker?.then(
        (opened) => opened[Symbol.asyncDispose](),
        () => undefined,
      )
      await launchers[Symbol.asyncDispose]()
      await cgroups[Symbol.asyncDispose]()
      forgetGroups(stateDirectory, daemon)
    },
  }
}

const archOf = (arch: string): Arch => {
  if (arch === 'x64' || arch === 'arm64') return arch
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `there is no filter of system calls for ${arch}; use a machine with x64 or arm64`,
    { control: 'seccomp', arch },
  )
}

const getOrMake = <K, V>(
  known: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V => {
  const found = known.get(key)
  if (found !== undefined) return found
  const made = make()
  known.set(key, made)
  return made
}
