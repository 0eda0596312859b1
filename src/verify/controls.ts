// The controls that the probes guard: what each is, and the same sandbox with that one taken out.
import type { BubblewrapArgument } from '../sandbox/bubblewrap/argv.ts'
import type { BubblewrapPlan } from '../sandbox/bubblewrap/driver.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import type { Layer } from './result.ts'

/** What an arm may show of the host: paths that no plan mounts. */
export interface Exposure {
  readonly paths: readonly string[]
  /** What the daemon's environment has and no server's may */
  readonly variables: Readonly<Record<string, string>>
}

type Remove = (plan: BubblewrapPlan, exposure: Exposure) => Partial<BubblewrapPlan>

/**
 * A control. `without` gives the plan without it; where `isRefused` says so, that sandbox must not even come up. A control that
 * nobody can take out from here has a reason instead: its probes are shown open outside, and have no broken arm.
 */
export interface Control {
  readonly what: string
  readonly layer: Layer
  readonly arm:
    | { readonly without: Remove; readonly isRefused?: (spec: Pick<SandboxSpec, 'network'>) => boolean }
    | { readonly without: null; readonly reason: string }
}

// One instruction: allow.
const allowEverything = new Uint8Array([0x06, 0, 0, 0, 0x00, 0x00, 0xff, 0x7f])

const withoutFilter: Remove = ({ arguments: all }) => {
  const place = all.indexOf('--seccomp') + 1
  return { arguments: all.map((it, index) => (index === place ? { data: allowEverything } : it)) }
}

const withoutInner =
  (isTaken: (limit: BubblewrapPlan['innerLimits'][number]) => boolean): Remove =>
  ({ innerLimits }) => ({ innerLimits: innerLimits.filter((limit) => !isTaken(limit)) })

const withoutCounters = withoutInner(({ type }) => type === 'counter')

const both =
  (one: Remove, other: Remove): Remove =>
  (plan, exposure) => {
    const half = one(plan, exposure)
    return { ...half, ...other({ ...plan, ...half }, exposure) }
  }

const withoutOptions =
  (...options: string[]): Remove =>
  ({ arguments: all }) => ({ arguments: all.filter((it) => typeof it !== 'string' || !options.includes(it)) })

/** Leaves out an option and the values behind it, wherever `isTaken` says so. */
const withoutRuns =
  (length: number, isTaken: (run: readonly BubblewrapArgument[]) => boolean): Remove =>
  ({ arguments: all }) => {
    const kept: BubblewrapArgument[] = []
    for (let index = 0; index < all.length;)
      if (isTaken(all.slice(index, index + length))) index += length
      else kept.push(all[index++] ?? '')
    return { arguments: kept }
  }

const replaced =
  (from: string, to: string): Remove =>
  ({ arguments: all }) => ({ arguments: all.map((it) => (it === from ? to : it)) })

/** Puts more before the folder is sealed, which is the root or /dev. */
const adding =
  (folder: '/' | '/dev', more: readonly string[]): Remove =>
  ({ arguments: all }) => {
    const seal = all.findIndex((it, index) => it === '--remount-ro' && all[index + 1] === folder)
    return { arguments: [...all.slice(0, seal), ...more, ...all.slice(seal)] }
  }

const exposed: Remove = (plan, exposure) => {
  const isStaged = plan.staged.length > 0
  const extra = exposure.paths.map((source, index) => ({ source, staging: `verify-${index}` }))
  const staged = isStaged ? [...plan.staged, ...extra] : plan.staged
  const binds = extra.flatMap(({ source, staging }) => [
    '--ro-bind',
    isStaged ? `/tmp/${staging}` : source,
    source,
  ])
  return { ...adding('/', binds)(plan, exposure), staged }
}

const nothingOutside: BubblewrapPlan['outerLimits'] = {
  procsFiles: [],
  watch() {},
  hasRunOut: () => false,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

const nproc = 6

export const controls = {
  seccomp: {
    what: 'the filter of system calls, which refuses what it does not list',
    layer: 'filter',
    arm: { without: withoutFilter },
  },
  'namespace-counters': {
    what: 'the kernel’s counters of namespaces, all at 0 in the sandbox’s user namespace',
    layer: 'limit',
    arm: { without: withoutCounters },
  },
  'no-new-namespaces': {
    what: 'filter and counters together: either alone forbids a new namespace',
    layer: 'namespace',
    arm: { without: both(withoutFilter, withoutCounters) },
  },
  'mount-plan': {
    what: 'a root in which only what was declared is mounted',
    layer: 'mount',
    arm: { without: exposed },
  },
  'read-only': {
    what: 'mounts that are read-only, the root and /dev with them',
    layer: 'mount',
    arm: {
      without: both(
        replaced('--ro-bind', '--bind'),
        withoutRuns(2, ([option, path]) => option === '--remount-ro' && (path === '/' || path === '/dev')),
      ),
    },
  },
  'sized-scratch': {
    what: 'sizes of /tmp, the home and /dev/shm',
    layer: 'limit',
    arm: { without: withoutRuns(2, ([option, bytes]) => option === '--size' && Number(bytes) > 65_536) },
  },
  nodev: {
    what: 'mounts on which device nodes are only files',
    layer: 'mount',
    arm: { without: replaced('--ro-bind', '--dev-bind') },
  },
  nosuid: {
    what: 'mounts that honour no setuid bit, and privileges that no exec adds',
    layer: 'mount',
    arm: { without: null, reason: 'bubblewrap sets it for every mount and cannot be told otherwise' },
  },
  'proc-masks': {
    what: 'covers over the host’s facts in /proc',
    layer: 'mask',
    arm: {
      without: both(
        withoutRuns(3, ([option, source]) => option === '--ro-bind' && source === '/dev/null'),
        withoutRuns(
          8,
          ([size, , , , option, path]) =>
            size === '--size' &&
            option === '--tmpfs' &&
            typeof path === 'string' &&
            path.startsWith('/proc/'),
        ),
      ),
    },
  },
  'proc-sys': {
    what: 'a read-only /proc/sys',
    layer: 'mount',
    arm: {
      without: withoutRuns(3, ([option, source]) => option === '--ro-bind' && source === '/proc/sys'),
    },
  },
  devices: {
    what: 'a /dev of five harmless nodes',
    layer: 'mount',
    arm: { without: adding('/dev', ['--dev-bind', '/dev/tty', '/dev/tty']) },
  },
  namespaces: {
    what: 'IPC, host name and control group namespaces of the sandbox’s own',
    layer: 'namespace',
    arm: {
      without: both(
        withoutOptions('--unshare-ipc', '--unshare-uts', '--unshare-cgroup'),
        withoutRuns(2, ([option]) => option === '--hostname'),
      ),
    },
  },
  'pid-namespace': {
    what: 'processes numbered from 1, with nobody else’s among them',
    layer: 'namespace',
    arm: { without: withoutOptions('--unshare-pid', '--as-pid-1'), isRefused: () => true },
  },
  'net-namespace': {
    what: 'a network of the sandbox’s own, with a loopback interface and nobody behind it',
    layer: 'namespace',
    arm: {
      without: withoutOptions('--unshare-net'),
      // The relay needs rights over its network, which nobody here has over the host's.
      isRefused: ({ network }) => network.mode === 'allowlist',
    },
  },
  'user-mapping': {
    what: 'one uid of the host that is not 0, and no groups',
    layer: 'namespace',
    arm: { without: null, reason: 'an ordinary user can map no other uid than its own' },
  },
  capabilities: {
    what: 'five empty sets of capabilities',
    layer: 'capability',
    arm: {
      without: withoutRuns(2, ([option, name]) => option === '--cap-add' && name === 'CAP_SETPCAP'),
      isRefused: () => true,
    },
  },
  'pid-1': {
    what: 'a PID 1 that is not dumpable and takes no signal from inside',
    layer: 'kernel',
    arm: { without: null, reason: 'sallyport-init forbids it to itself, in its own code' },
  },
  environment: {
    what: 'an environment that is built from empty',
    layer: 'supervisor',
    arm: {
      without: ({ spec }, { variables }) => ({
        spec: {
          ...spec,
          environment: {
            ...spec.environment,
            ...Object.fromEntries(
              Object.entries(variables).map(([name, value]) => [name, { value, origin: 'pass' as const }]),
            ),
          },
        },
      }),
    },
  },
  descriptors: {
    what: 'three streams and no other descriptor',
    layer: 'supervisor',
    arm: { without: null, reason: 'the launcher closes what it was not told to keep, in its own code' },
  },
  'resource-limits': {
    what: 'limits that a process is born with and cannot raise',
    layer: 'limit',
    arm: { without: withoutInner(({ type }) => type === 'limit') },
  },
  'process-limit': {
    what: 'the most processes and threads at once',
    layer: 'limit',
    arm: {
      without: both(
        withoutInner((limit) => limit.type === 'limit' && limit.resource === nproc),
        () => ({ outerLimits: nothingOutside }),
      ),
    },
  },
  'memory-limit': {
    what: 'the most memory, files in memory counted with it',
    layer: 'limit',
    arm: { without: () => ({ outerLimits: nothingOutside }) },
  },
  resolver: {
    what: 'a name server that knows granted names and no others',
    layer: 'resolver',
    arm: {
      without: null,
      reason: 'the relay is a part of sallyport-init; outside, the machine’s own sockets answer',
    },
  },
  proxy: {
    what: 'a proxy outside that judges each connection by name and port',
    layer: 'proxy',
    arm: {
      without: null,
      reason: 'what is beyond the door is the supervisor’s, and a sandbox has no other way out',
    },
  },
} as const satisfies Readonly<Record<string, Control>>

export type ControlId = keyof typeof controls

export const controlOf = (id: ControlId): Control => controls[id]
