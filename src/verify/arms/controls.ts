// The controls that the probes guard: what each is, and the same sandbox with that one taken out.
import type { BubblewrapPlan } from '../../sandbox/bubblewrap/driver.ts'
import { type Control, notPid1 } from './control.ts'
import { egressControls } from './egress-controls.ts'
import { environmentControls } from './environment-controls.ts'
import { gateControls } from './gate-controls.ts'
import {
  adding,
  both,
  connected,
  exposed,
  nothingOutside,
  replaced,
  withoutCalls,
  withoutCounters,
  withoutFilter,
  withoutInner,
  withoutNetwork,
  withoutOptions,
  withoutOtherFilters,
  withoutRelay,
  withoutRuns,
  withStrangers,
} from '../lab/removal.ts'

const [nproc, sigpending, getNoNewPrivileges, setDumpable, remount, nosuid] = [6, 11, 39, 4, 0x20, 0x02]

export const controls = {
  seccomp: {
    what: 'the filter of system calls, which refuses what it does not list',
    layer: 'filter',
    // Behind a door the relay has one for sockets, and a server that is one program has one for that.
    arm: { without: both(withoutFilter, withoutOtherFilters) },
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
    what: 'mounts that honour no setuid bit',
    layer: 'mount',
    // bubblewrap binds first, and says what the mount may not do by mounting it again.
    arm: { without: withoutCalls([['mount', [3, remount | nosuid, remount | nosuid]]]) },
  },
  'no-new-privileges': {
    what: 'privileges that no exec adds, whatever bits and capabilities its file has',
    layer: 'kernel',
    // Told that the kernel did not keep it, sallyport-init starts nothing.
    arm: {
      without: withoutCalls([['prctl', [0, 0xff, getNoNewPrivileges]]]),
      refusal: () => /: no new privileges: /,
    },
  },
  'proc-masks': {
    what: 'covers over the host’s facts in /proc',
    layer: 'mask',
    arm: { without: () => ({ covers: [] }) },
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
    arm: { without: withoutOptions('--unshare-pid', '--as-pid-1'), refusal: () => notPid1 },
  },
  'net-namespace': {
    what: 'a network of the sandbox’s own, with a loopback interface and nobody behind it',
    layer: 'namespace',
    arm: {
      without: withoutOptions('--unshare-net'),
      // The relay needs rights over its network, which nobody here has over the host's.
      refusal: ({ network }) => (network.mode === 'allowlist' ? /: egress: / : null),
    },
  },
  'user-mapping': {
    what: 'one uid of the host that is not 0, and no groups',
    layer: 'namespace',
    arm: {
      without: ({ spec }) => ({ spec: { ...spec, hostUid: 0, hostGid: 0 } }),
      refusal: () => /never runs as root/,
    },
  },
  capabilities: {
    what: 'five empty sets of capabilities',
    layer: 'capability',
    arm: {
      without: withoutRuns(2, ([option, name]) => option === '--cap-add' && name === 'CAP_SETPCAP'),
      refusal: () => /: capabilities: /,
    },
  },
  'first-process': {
    what: 'sallyport-init itself as PID 1, which the kernel protects from what it starts, and not the sandbox tool',
    layer: 'kernel',
    arm: { without: withoutOptions('--as-pid-1'), refusal: () => notPid1 },
  },
  'pid-1': {
    what: 'a PID 1 into which nobody looks, since it is not dumpable, and which holds nothing for others',
    layer: 'kernel',
    arm: {
      without: withoutCalls([
        ['prctl', [0, 0xff, setDumpable], [1, 1, 0]],
        ['prlimit64', [0, 0xff, 0], [1, 0xff, sigpending]],
      ]),
    },
  },
  ...environmentControls,
  'clean-start': {
    what: 'a process as it is before anything was done with it',
    layer: 'supervisor',
    // It keeps the umask of the launcher, which is for nobody else.
    arm: { without: withoutCalls([['umask', [0, 0xfff, 0o022]]]) },
  },
  descriptors: {
    what: 'three streams and no other descriptor',
    layer: 'supervisor',
    arm: { without: withoutCalls([['close_range']], '/') },
  },
  launcher: {
    what: 'a launcher that passes nothing of the daemon on',
    layer: 'supervisor',
    arm: {
      without: both(withoutOptions('--clearenv'), (_plan, { launchers }) => ({
        launcher: launchers.careless,
      })),
    },
  },
  staging: {
    what: 'sources that a daemon of root mounts where no other namespace has them',
    layer: 'namespace',
    arm: { without: (_plan, { launchers }) => ({ launcher: launchers.sharing }) },
  },
  'stream-ends': {
    what: 'a PID 1 that lets go of the server’s streams',
    layer: 'supervisor',
    // It keeps stderr.
    arm: { without: withoutCalls([['close', [0, 0xff, 6]]]) },
  },
  streams: {
    what: 'streams that are the supervisor’s own sockets, neither a terminal nor a file',
    layer: 'supervisor',
    // The server's stdin stays what PID 1 had: a device.
    arm: {
      without: withoutCalls([
        ['dup2', [0, 0xff, 4]],
        ['dup3', [0, 0xff, 4]],
      ]),
    },
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
      without: both<BubblewrapPlan>(
        withoutInner((limit) => limit.type === 'limit' && limit.resource === nproc),
        () => ({ outerLimits: nothingOutside }),
      ),
    },
  },
  'cpu-limit': {
    what: 'a share of the processors',
    layer: 'limit',
    arm: { without: () => ({ outerLimits: nothingOutside }) },
  },
  container: {
    what: 'a container that the engine has as it was ordered, by the engine’s own word',
    layer: 'supervisor',
    arm: { without: () => ({}) },
  },
  ...gateControls,
  output: {
    what: 'streams that take nothing while nobody reads them',
    layer: 'supervisor',
    arm: { around: (lab) => ({ ...lab, readsAtOnce: true }) },
  },
  'memory-limit': {
    what: 'the most memory, files in memory counted with it',
    layer: 'limit',
    arm: { without: () => ({ outerLimits: nothingOutside }) },
  },
  resolver: {
    what: 'a name server that knows granted names and no others',
    layer: 'resolver',
    arm: { without: withStrangers },
  },
  relay: {
    what: 'a proxy and a name server that have their addresses before the server is there',
    layer: 'kernel',
    arm: {
      without: (plan, exposure) =>
        plan.spec.network.mode === 'none' ? withoutNetwork(plan, exposure) : withoutRelay(plan),
    },
  },
  'relay-rights': {
    what: 'a relay that gave up every right and can start nothing',
    layer: 'limit',
    // Where a profile has no network, that there is no relay is all there is to it: one that has rights is one that is there.
    arm: { without: withoutCalls([['prlimit64', [0, 0xff, 0], [1, 0xff, nproc]]]), around: connected },
  },
  'one-program': {
    what: 'a filter that lets one program be executed, once',
    layer: 'filter',
    arm: { without: ({ spec }) => ({ spec: { ...spec, exec: 'any' } }) },
  },
  ...egressControls,
} as const satisfies Readonly<Record<string, Control>>

export type ControlId = keyof typeof controls

export const controlOf = (id: ControlId): Control => controls[id]
