// From the spec to what the engine is asked to make: pure. Nothing of the server's own is in it but where its files are.
import type { DaemonId } from '../../lib/ids.ts'
import { initCommand, sandboxUid } from '../bubblewrap/argv.ts'
import type { ProcMask } from '../bubblewrap/masks.ts'
import { limitsWithRelay } from '../limits/limits.ts'
import { credentialFolder, mountsOf, type Mount, type SandboxSpec } from '../spec.ts'
import type { ContainerPlan } from './engine.ts'

/** Where the supervisor waits for init, inside. */
export const controlTarget = '/sallyport/control'

/** Where init finds the counters of its own user namespace, which are read-only in /proc as everything of /proc/sys is. */
const counters = { source: '/proc/sys/user', target: '/sallyport/counters' } as const

/** Labels that say whose a container is. */
export const labels = {
  daemon: 'io.sallyport.daemon',
  boot: 'io.sallyport.boot',
  instance: 'io.sallyport.instance',
  server: 'io.sallyport.server',
} as const

/** What the engine and the host add to a spec. */
export interface ContainerHost {
  readonly daemon: DaemonId
  readonly boot: string
  /** Id of the image whose root the container has */
  readonly imageId: string
  /** Folders that the image declares as volumes, which would be writable and stay behind */
  readonly volumes: readonly string[]
  /** Names of the image's labels: what watches an engine would do for the container what they say */
  readonly imageLabels: readonly string[]
  /** Names of the image's variables: the runtime's hooks would do for the container what they say, and long ones keep init from starting */
  readonly imageVariables: readonly string[]
  /** OCI runtime, or null for the engine's own choice */
  readonly runtime: string | null
  /** Whether that is gVisor, which has none of this kernel's counters */
  readonly isGvisor: boolean
  /** Whether the engine maps the users of its containers (`userns-remap`) unless asked not to */
  readonly isRemapped: boolean
  readonly initPath: string
  /** Host path of the control socket */
  readonly control: string
  /** Host path of each file that the supervisor writes, by its target */
  readonly files: ReadonlyMap<string, string>
  /** The filter of system calls, as the engine takes it */
  readonly filter: string
  readonly procMasks: readonly ProcMask[]
  /** As many processors as the engine has */
  readonly processors: number
}

/** The container's name: one of ours, whatever labels an image brings. */
export const containerName = ({ instance }: { readonly instance: string }, daemon: DaemonId): string =>
  `sallyport-${daemon}-${instance}`

/**
 * Returns what to ask the engine for.
 *
 * The user is the spec's, without a capability and without a way to get one; the root is read-only, and what is writable is in
 * memory and has a size. The image says nothing: its entry point, command, user, health check, volumes, labels and variables are
 * all replaced, emptied or unused. The engine writes nothing down of what the server says, and pulls nothing.
 */
export const containerPlan = (spec: SandboxSpec, host: ContainerHost): ContainerPlan => ({
  Image: host.imageId,
  User: `${spec.hostUid}:${spec.hostGid}`,
  Hostname: 'sandbox',
  WorkingDir: '/',
  Entrypoint: [initCommand[0]],
  Cmd: ['container'],
  Env: host.imageVariables.map((name) => `${name}=`),
  Healthcheck: { Test: ['NONE'] },
  NetworkDisabled: true,
  OpenStdin: true,
  StdinOnce: true,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  Tty: false,
  Labels: {
    ...Object.fromEntries(host.imageLabels.map((name) => [name, ''])),
    [labels.daemon]: host.daemon,
    [labels.boot]: host.boot,
    [labels.instance]: spec.instance,
    [labels.server]: spec.server,
  },
  HostConfig: {
    AutoRemove: true,
    RestartPolicy: { Name: '' },
    LogConfig: { Type: 'none', Config: {} },
    ...(host.runtime === null ? {} : { Runtime: host.runtime }),
    ...isolation(host),
    ...resources(spec, host),
    Mounts: binds(spec, host),
    Tmpfs: scratch(spec, host),
  },
})

type HostConfig = NonNullable<ContainerPlan['HostConfig']>

const isolation = ({ filter, procMasks, isGvisor, isRemapped }: ContainerHost): HostConfig => ({
  Privileged: false,
  ReadonlyRootfs: true,
  CapDrop: ['ALL'],
  CapAdd: [],
  SecurityOpt: ['no-new-privileges', `seccomp=${filter}`],
  NetworkMode: 'none',
  IpcMode: 'none',
  PidMode: '',
  UTSMode: '',
  // Mapped, a mount would show other owners than were judged. The user is an ordinary one, and gets a user namespace from PID 1.
  UsernsMode: isRemapped ? 'host' : '',
  CgroupnsMode: 'private',
  Init: false,
  Devices: [],
  MaskedPaths: [
    '/sys',
    '/dev/tty',
    ...(isGvisor ? ['/dev/pts', '/dev/mqueue'] : []),
    ...procMasks.map(({ path }) => path),
  ],
  ReadonlyPaths: ['/proc/sys'],
})

// Its kernel and its file server are Go programs, whose runtime ends them where it gets no thread.
const gvisorThreads = 256

// init counts too, and the memory is all there is: no swap beyond it.
const resources = (spec: SandboxSpec, { processors, isGvisor }: ContainerHost): HostConfig => {
  const limits = limitsWithRelay(spec)
  return {
    Memory: limits.memoryBytes,
    MemorySwap: limits.memoryBytes,
    PidsLimit: limits.pids + 1 + (isGvisor ? gvisorThreads : 0),
    NanoCpus: Math.round(Math.min(limits.cpu, processors) * 1e9),
    OomScoreAdj: 500,
    Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
  }
}

const binds = (
  spec: SandboxSpec,
  { initPath, control, files, isGvisor }: ContainerHost,
): HostConfig['Mounts'] => [
  ...mountsOf(spec).map(bind),
  ...spec.files.map(({ target }) => bind({ source: files.get(target) ?? '', target, access: 'read' })),
  bind({ source: control, target: controlTarget, access: 'read' }),
  // Writable for who has CAP_SYS_RESOURCE in the namespace whose they are: init, until it drops all.
  ...(isGvisor ? [] : [bind({ ...counters, access: 'write' })]),
  bind({ source: initPath, target: initCommand[0], access: 'read' }),
]

// What is mounted below a read-only source stays out: older engines would mount it writable.
const bind = ({ source, target, access }: Pick<Mount, 'source' | 'target' | 'access'>) => ({
  Type: 'bind' as const,
  Source: source,
  Target: target,
  ReadOnly: access === 'read',
  BindOptions: { Propagation: 'rprivate' as const, NonRecursive: access === 'read' },
})

const scratch = (spec: SandboxSpec, { volumes, isGvisor }: ContainerHost): Record<string, string> => {
  const isMounted = (path: string): boolean => spec.mounts.some(({ target }) => target === path)
  const own = `rw,exec,nosuid,nodev,mode=0700,uid=${spec.hostUid},gid=${spec.hostGid}`
  const sized = `${own},size=${spec.limits.tmpBytes}`
  return {
    ...Object.fromEntries(volumes.filter((path) => !isMounted(path)).map((path) => [path, sized])),
    '/tmp': sized,
    '/home/user': sized,
    '/dev/shm': sized,
    // Over the engine's own, and with it over its terminals and message queues; gVisor would put no device in it.
    ...(isGvisor ? {} : { '/dev': 'ro,dev,nosuid,noexec,mode=0755,size=65536' }),
    ...(spec.hasCredentialFiles ? { [credentialFolder]: `${own},size=1048576` } : {}),
  }
}

/** The ids that the server sees as its own. */
export const innerUser = { uid: sandboxUid, gid: sandboxUid } as const
