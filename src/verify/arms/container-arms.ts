// What each control is in a container: the same launch of the docker driver with that one taken out.
import type { DockerPlan } from '../../sandbox/docker/driver.ts'
import { strangers } from '../lab/behind.ts'
import {
  asking,
  hosting,
  scratch,
  unmasked,
  withNetwork,
  withoutCalls,
  withoutFilter,
  withoutNetwork,
  withoutRelay,
} from '../lab/container-removal.ts'
import { type ArmOf, notPid1 } from './control.ts'
import type { ControlId } from './controls.ts'
import {
  filesThatAreNone,
  swappedTarget,
  unchangedModes,
  unheardEnds,
  unreadChannel,
} from './gate-controls.ts'
import { both, withoutCounters, withoutInner } from '../lab/removal.ts'

const [nproc, sigpending, setDumpable, dropBounding, getNoNewPrivileges] = [6, 11, 4, 24, 39]

/** What is around a sandbox under each driver, and what only the other driver has. */
type NotInContainers =
  | 'denials'
  | 'patterns'
  | 'addresses'
  | 'spoken-names'
  | 'budgets'
  | 'placeholders'
  | 'told'
  | 'doors'
  | 'network-mode'
  | 'mount-targets'
  | 'code-apart'
  | 'protected-names'
  | 'output'
  | 'end'
  | 'variables'
  | 'never-root'
  | 'staging'

/** For every control, in the order of `controls`. Those that are around a sandbox are the same under each driver. */
export const containerArms: Readonly<Record<Exclude<ControlId, NotInContainers>, ArmOf<DockerPlan>>> = {
  seccomp: { without: (plan, exposure) => both(withoutFilter, withoutRelay)(plan, exposure) },
  'namespace-counters': { without: withoutCounters },
  'no-new-namespaces': { without: both(withoutFilter, withoutCounters) },
  'mount-plan': {
    without: (plan, exposure) =>
      hosting(({ Mounts = [] }) => ({
        Mounts: [
          ...Mounts,
          ...exposure.paths
            .filter((path) => path !== '/sys')
            .map((path) => ({ Type: 'bind' as const, Source: path, Target: path, ReadOnly: true })),
        ],
        MaskedPaths: [],
      }))(plan, exposure),
  },
  'read-only': {
    without: both(
      hosting(({ Mounts = [] }) => ({
        ReadonlyRootfs: false,
        Mounts: Mounts.map((mount) => ({ ...mount, ReadOnly: false })),
      })),
      scratch(/^ro,/, 'rw,'),
    ),
  },
  'sized-scratch': { without: scratch(/,size=\d{6,}/, '') },
  nodev: { without: scratch(/\bnodev\b/, 'dev') },
  nosuid: { without: scratch(/\bnosuid\b/, 'suid') },
  'no-new-privileges': {
    without: both(
      hosting(({ SecurityOpt = [] }) => ({
        SecurityOpt: SecurityOpt.filter((option: string) => option !== 'no-new-privileges'),
      })),
      withoutCalls([['prctl', [0, 0xff, getNoNewPrivileges]]]),
    ),
    refusal: () => /: no new privileges: /,
  },
  'proc-masks': { without: unmasked((path) => path.startsWith('/proc/')) },
  'proc-sys': { without: hosting(() => ({ ReadonlyPaths: [] })) },
  devices: {
    without: both(
      unmasked((path) => path.startsWith('/dev/')),
      hosting(({ Tmpfs }) => ({
        // The engine's own /dev, which ours covers.
        Tmpfs: Object.fromEntries(Object.entries(Tmpfs as object).filter(([path]) => path !== '/dev')),
        Devices: [{ PathOnHost: '/dev/kmsg', PathInContainer: '/dev/kmsg', CgroupPermissions: 'r' }],
      })),
    ),
  },
  namespaces: {
    without: asking((asked) => ({
      ...asked,
      Hostname: '',
      HostConfig: { ...asked.HostConfig, IpcMode: 'host', UTSMode: 'host', CgroupnsMode: 'host' },
    })),
  },
  'pid-namespace': { without: hosting(() => ({ PidMode: 'host' })), refusal: () => notPid1 },
  'net-namespace': {
    without: withoutNetwork,
    refusal: ({ network }) => (network.mode === 'allowlist' ? /: egress: / : null),
  },
  'user-mapping': {
    without: asking((asked) => ({ ...asked, User: '0:0' })),
    // A root without a right that could open what is another user's.
    refusal: () => /: container: \/sallyport\/control: Permission denied|never runs as root/,
  },
  capabilities: {
    without: both(
      hosting(() => ({ CapDrop: [] })),
      withoutCalls([['capset'], ['prctl', [0, 0xff, dropBounding]]]),
    ),
    refusal: () => /: capabilities: /,
  },
  'first-process': { without: hosting(() => ({ PidMode: 'host' })), refusal: () => notPid1 },
  'pid-1': {
    without: withoutCalls([
      ['prctl', [0, 0xff, setDumpable], [1, 1, 0]],
      ['prlimit64', [0, 0xff, 0], [1, 0xff, sigpending]],
    ]),
  },
  environment: {
    without: ({ spec }, { variables }) => {
      const passed = Object.entries(variables).map(([name, value]) => [name, { value, origin: 'pass' }])
      return { spec: { ...spec, environment: { ...spec.environment, ...Object.fromEntries(passed) } } }
    },
  },
  'clean-start': { without: withoutCalls([['umask', [0, 0xfff, 0o022]]], ['umask 077']) },
  descriptors: { without: withoutCalls([['close_range']], ['+/']) },
  // Told of a group that nobody asked for, init starts nothing.
  launcher: { without: hosting(() => ({ GroupAdd: ['1'] })), refusal: () => /: container: groups: / },
  // What the engine holds it holds as long as the container is there.
  'stream-ends': { around: (lab) => ({ ...lab, kills: false }) },
  streams: {
    without: withoutCalls([
      ['dup2', [0, 0xff, 4]],
      ['dup3', [0, 0xff, 4]],
    ]),
  },
  'resource-limits': { without: withoutInner(({ type }) => type === 'limit') },
  'process-limit': {
    without: both(
      withoutInner((limit) => limit.type === 'limit' && limit.resource === nproc),
      hosting(() => ({ PidsLimit: -1 })),
    ),
  },
  'cpu-limit': { without: hosting(() => ({ NanoCpus: 0 })) },
  'memory-limit': { without: hosting(() => ({ Memory: 0, MemorySwap: 0 })) },
  resolver: {
    without: withNetwork((network) => {
      const port = network.grants[0]?.port ?? 443
      return { ...network, grants: [...network.grants, ...strangers.map((host) => ({ host, port }))] }
    }, withoutNetwork),
  },
  relay: { without: withNetwork(() => ({ mode: 'none' }), withoutNetwork) },
  'relay-rights': { without: withoutCalls([['prlimit64', [0, 0xff, 0], [1, 0xff, nproc]]]) },
  'one-program': { without: ({ spec }) => ({ spec: { ...spec, exec: 'any' } }) },
  // What init does without, and so would never miss.
  container: {
    without: hosting(() => ({ CapDrop: [], OomScoreAdj: 0, MaskedPaths: [] })),
  },
  'secret-files': { without: withoutCalls(unchangedModes) },
  'new-files': { without: withoutCalls(filesThatAreNone) },
  proxy: { without: withNetwork((network) => network, withoutNetwork) },
  'mount-identity': {
    without: ({ spec }) => ({
      spec: { ...spec, mounts: spec.mounts.filter(({ target }) => target !== swappedTarget) },
    }),
  },
  'orphan-end': { without: withoutCalls(unreadChannel) },
  'relay-end': { without: withoutCalls(unheardEnds) },
}
