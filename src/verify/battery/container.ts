// Probe 146: a container is what was ordered, as the engine itself has it: whether or not something else would hold without.
import { lstat } from 'node:fs/promises'
import { controlTarget } from '../../sandbox/docker/container.ts'
import type { DockerPlan } from '../../sandbox/docker/driver.ts'
import type { ContainerFacts } from '../../sandbox/docker/engine.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import { finds, seen } from '../attempt.ts'
import { inapplicable } from '../gvisor/inapplicable.ts'
import type { Probe } from '../probe.ts'

/** Beside the server's processes: init, the relay and what the runtime itself needs, gVisor's more than others'. */
const mostOwnProcesses = 4 + 256

/** Paths of sockets of ours, inside. */
const ownSockets: ReadonlySet<string> = new Set([controlTarget, doorTarget])

/** What the engine says that is other than it must be for any server, each by the engine's own name for it. */
const amissIn = (
  { Config, HostConfig }: ContainerFacts,
  { spec, isRemapped }: Pick<DockerPlan, 'spec' | 'isRemapped'>,
  masked: readonly string[],
): readonly string[] => {
  const config: Readonly<Record<string, unknown>> = { ...HostConfig }
  const options = HostConfig.SecurityOpt ?? []
  const filter = options.find((option: string) => option.startsWith('seccomp=')) ?? ''
  const { memoryBytes, pids } = spec.limits
  const covered = HostConfig.MaskedPaths ?? []
  const demands: Readonly<Record<string, boolean>> = {
    User: Config.User === `${spec.hostUid}:${spec.hostGid}` && !/(^|:)0(:|$)/.test(Config.User),
    Tty: !Config.Tty,
    Volumes: isNone(Config.Volumes),
    Healthcheck: Config.Healthcheck?.Test?.[0] === 'NONE',
    Privileged: HostConfig.Privileged === false,
    CapDrop: String(HostConfig.CapDrop) === 'ALL',
    CapAdd: isNone(HostConfig.CapAdd),
    GroupAdd: isNone(HostConfig.GroupAdd),
    ReadonlyRootfs: HostConfig.ReadonlyRootfs === true,
    'SecurityOpt no-new-privileges': options.some((it: string) => /^no-new-privileges(:true)?$/.test(it)),
    'SecurityOpt seccomp': /"defaultAction":"SCMP_ACT_(ERRNO|KILL|TRAP)/.test(filter.replaceAll(' ', '')),
    NetworkMode: HostConfig.NetworkMode === 'none',
    IpcMode: HostConfig.IpcMode === 'none',
    PidMode: HostConfig.PidMode === '',
    UTSMode: HostConfig.UTSMode === '',
    UsernsMode: HostConfig.UsernsMode === (isRemapped ? 'host' : ''),
    CgroupnsMode: config['CgroupnsMode'] === 'private',
    PidsLimit: isWithin(HostConfig.PidsLimit, pids, pids + mostOwnProcesses),
    Memory: HostConfig.Memory === memoryBytes,
    MemorySwap: HostConfig.MemorySwap === memoryBytes,
    NanoCpus: isWithin(HostConfig.NanoCpus, 1, spec.limits.cpu * 1e9),
    OomScoreAdj: isWithin(HostConfig.OomScoreAdj, 1, 1000),
    Devices:
      isNone(HostConfig.Devices) && isNone(HostConfig.DeviceRequests) && isNone(HostConfig.DeviceCgroupRules),
    Binds: isNone(HostConfig.Binds) && isNone(HostConfig.VolumesFrom) && isNone(HostConfig.Links),
    PortBindings: isNone(HostConfig.PortBindings) && HostConfig.PublishAllPorts !== true,
    Sysctls: isNone(HostConfig.Sysctls),
    Init: HostConfig.Init !== true,
    MaskedPaths: ['/sys', '/dev/tty', ...masked].every((path) => covered.includes(path)),
    ReadonlyPaths: (HostConfig.ReadonlyPaths ?? []).includes('/proc/sys'),
    Tmpfs: Object.values((HostConfig.Tmpfs ?? {}) as Record<string, string>).every((it) =>
      /^(?=.*\bnosuid\b)(?=.*\bsize=\d).*(\bnodev\b|\bnoexec\b)/.test(it),
    ),
    LogConfig: HostConfig.LogConfig?.Type === 'none',
    RestartPolicy: /^(no)?$/.test(HostConfig.RestartPolicy?.Name ?? ''),
    AutoRemove: HostConfig.AutoRemove === true,
  }
  return Object.entries(demands).flatMap(([name, holds]) => (holds ? [] : [name]))
}

/** Mounts that let through what is mounted later, or that are sockets of somebody else's: an engine's own above all. */
const amissMounts = async ({ HostConfig }: ContainerFacts): Promise<readonly string[]> => {
  const mounts = await Promise.all(
    (HostConfig.Mounts ?? []).map(async ({ Source, Target, Type, BindOptions }) => {
      const isSocket = !ownSockets.has(Target) && (await lstat(Source)).isSocket()
      const isShared = Type !== 'bind' || BindOptions?.Propagation !== 'rprivate'
      return [isSocket ? `a socket at ${Target}` : '', isShared ? `a mount that is shared, ${Target}` : '']
    }),
  )
  return mounts.flat().filter((text) => text !== '')
}

const isNone = (value: object | null | undefined): boolean => Object.keys(value ?? {}).length === 0

const isWithin = (value: number | undefined, least: number, most: number): boolean =>
  value !== undefined && value >= least && value <= most

export const containerProbes: readonly Probe[] = [
  {
    id: 'capabilities.ordered',
    number: 146,
    group: 'capabilities',
    protects:
      'A container has what was ordered for it and no more, whether or not something else would hold without.',
    control: 'container',
    trial: ({ driver, masked }) =>
      driver === 'docker'
        ? {
            expected: 'every setting as it is ordered for any server',
            attempts: [
              seen(
                'the container, as the engine has it',
                async ({ launched }) => {
                  if (launched?.plan.driver !== 'docker') return 'there is no container'
                  const { engine, name } = launched.plan
                  const facts = await engine.inspect(name)
                  if (facts === null) return 'the engine has no such container'
                  return [...amissIn(facts, launched.plan, masked), ...(await amissMounts(facts))].join(', ')
                },
                (text) => (text === '' ? null : `other than ordered: ${text}`),
              ),
            ],
            outside: [
              finds(
                ['text', '/proc/self/status'],
                (text) => (/^CapBnd:\s+0+$/m.test(text) ? null : 'capabilities that it could come by'),
                'a process of this machine',
              ),
            ],
          }
        : inapplicable('no container', 'no engine makes this sandbox', 'with --driver docker'),
  },
]
