// What each control is in a container: the same launch of the docker driver with that one taken out.
import type { DockerPlan } from '../sandbox/docker/driver.ts'
import type { ContainerPlan } from '../sandbox/docker/engine.ts'
import type { Network } from '../sandbox/spec.ts'
import type { ControlId } from './controls.ts'
import { type Exposure, filterForNothing, strangers } from './removal.ts'

/** Takes a control out of a container's plan; null where that network has no such arm. */
type Remove = (plan: DockerPlan, exposure: Exposure) => Partial<DockerPlan> | null

/** A control's arm in a container, or the reason why nobody can take it out from here. */
export type ContainerArm =
  | { readonly without: Remove; readonly isRefused?: true; readonly needsNetwork?: true }
  | { readonly without: null; readonly reason: string }

type HostConfig = ContainerPlan['HostConfig']

const asking =
  (change: (asked: ContainerPlan) => ContainerPlan): Remove =>
  ({ container }) => ({ container: (folder) => change(container(folder)) })

const hosting = (change: (config: HostConfig) => Partial<HostConfig>): Remove =>
  asking((asked) => ({ ...asked, HostConfig: { ...asked.HostConfig, ...change(asked.HostConfig) } }))

const both =
  (one: Remove, other: Remove): Remove =>
  (plan, exposure) => {
    const half = one(plan, exposure)
    return { ...half, ...other({ ...plan, ...half }, exposure) }
  }

const withoutInner =
  (isTaken: (limit: DockerPlan['innerLimits'][number]) => boolean): Remove =>
  ({ innerLimits }) => ({ innerLimits: innerLimits.filter((limit) => !isTaken(limit)) })

const withNetwork =
  (change: (network: Extract<Network, { mode: 'allowlist' }>) => Network): Remove =>
  ({ spec }) =>
    spec.network.mode === 'none' ? null : { spec: { ...spec, network: change(spec.network) } }

const withoutCounters = withoutInner(({ type }) => type === 'counter')
const withoutFilter = both(
  hosting(() => ({ SecurityOpt: ['no-new-privileges', 'seccomp=unconfined'] })),
  () => ({ filter: filterForNothing }),
)
const withoutRelay = withNetwork(() => ({ mode: 'none' }))
const unmasked = (isTaken: (path: string) => boolean): Remove =>
  hosting(({ MaskedPaths = [] }) => ({ MaskedPaths: MaskedPaths.filter((path) => !isTaken(path)) }))
const scratch = (from: RegExp, to: string): Remove =>
  hosting(({ Tmpfs }) => ({
    Tmpfs: Object.fromEntries(
      Object.entries(Tmpfs as Record<string, string>).map(([path, options]) => [
        path,
        options.replace(from, to),
      ]),
    ),
  }))
const isProc = (path: string): boolean => path.startsWith('/proc/')
const nproc = 6
const inOurCode = 'sallyport-init sees to it in its own code, whatever the engine does'

/** The plan with one more mount, read-only. */
export const alsoMounted = (plan: DockerPlan, source: string, target: string): DockerPlan => ({
  ...plan,
  container: (folder) => {
    const asked = plan.container(folder)
    const { Mounts = [] } = asked.HostConfig
    const mount = { Type: 'bind' as const, Source: source, Target: target, ReadOnly: true }
    return { ...asked, HostConfig: { ...asked.HostConfig, Mounts: [...Mounts, mount] } }
  },
})

/** For every control, in the order of `controls`. Those that are around a sandbox are the same under each driver. */
export const containerArms: Readonly<
  Record<Exclude<ControlId, 'output' | 'end' | 'launcher' | 'stream-ends'>, ContainerArm>
> = {
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
  'no-new-privileges': { without: null, reason: inOurCode },
  'proc-masks': { without: unmasked(isProc) },
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
  'pid-namespace': { without: hosting(() => ({ PidMode: 'host' })), isRefused: true },
  'net-namespace': { without: null, reason: inOurCode },
  'user-mapping': { without: asking((asked) => ({ ...asked, User: '0:0' })), isRefused: true },
  capabilities: { without: null, reason: inOurCode },
  'first-process': { without: hosting(() => ({ PidMode: 'host' })), isRefused: true },
  'pid-1': { without: null, reason: inOurCode },
  environment: {
    without: ({ spec }, { variables }) => {
      const passed = Object.entries(variables).map(([name, value]) => [name, { value, origin: 'pass' }])
      return { spec: { ...spec, environment: { ...spec.environment, ...Object.fromEntries(passed) } } }
    },
  },
  'clean-start': { without: null, reason: inOurCode },
  descriptors: { without: null, reason: inOurCode },
  streams: { without: null, reason: 'the engine frames what comes from pipes, and nothing else is read' },
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
    }),
    needsNetwork: true,
  },
  relay: { without: withoutRelay, needsNetwork: true },
  'relay-rights': { without: null, reason: inOurCode },
  'one-program': { without: ({ spec }) => ({ spec: { ...spec, exec: 'any' } }) },
  proxy: { without: withNetwork((network) => network), needsNetwork: true },
}
