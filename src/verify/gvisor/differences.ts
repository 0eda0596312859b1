// What the battery expects otherwise of gVisor: each difference with its reason, and with what holds it there.
import { readFile } from 'node:fs/promises'
import { type Attempt, finds, seen, stops, stopsOrFinds } from '../attempt.ts'
import { alsoBy, held, isEndedWhole, only, readOnlyInTable, without } from './attempts.ts'
import { limitsWithRelay } from '../../sandbox/limits/limits.ts'
import { otherStart } from '../battery/privileges.ts'
import type { Probe, Scene, Trial } from '../probe.ts'
import type { Layer } from '../result.ts'

export interface Difference {
  /** Why it is another there, for people */
  readonly because: string
  readonly expected?: string
  /** What is tried in the place of the attempts, which stand as they are where this is left out; null for nothing */
  readonly attempts?: (trial: Trial, scene: Scene) => readonly Attempt[] | null
  /** What holds it there, where that is not the control's layer */
  readonly by?: Layer
  /** gVisor holds it without the control too: a sandbox without that shows nothing */
  readonly isHeldBeside?: true
  readonly probe?: Pick<Probe, 'isAlone' | 'endsBy'>
}

const ofCalls = 'userfaultfd foreign-memory foreign-descriptors kernel-log new-calls unknown'.split(' ')

/** What is expected as elsewhere, and holds there without the control too, by the id of the probe and with the reason. */
export const holdsAnyhow = new Map<string, string>([
  ...[
    'proc.processes',
    'proc.arguments-of-pid-1',
    'proc.network-tables',
    'network.interfaces',
    'network.routes',
    'network.host-loopback',
    'network.inward',
    'network.spoken',
    'network.names',
    'network.grants',
    'network.listeners',
    'network.other-sandboxes',
    'ipc.signals',
    'ipc.other-sandboxes',
    'time.host-name',
  ].map((id) => [id, 'its processes, network and names are its own, and it takes no others'] as const),
  ...['files.mount-descriptors', ...ofCalls.map((name) => `syscalls.${name}`)].map(
    (id) => [id, 'it has no such call, with the filter or without'] as const,
  ),
  ['files.around-by-proc', 'it lets nobody through the links of another process'],
])

const own = 'it is gVisor’s own, made up for this one sandbox, and tells nothing of the host'

const otherwise: Difference = {
  because: 'it names the same want of a route otherwise',
  attempts: alsoBy('EHOSTUNREACH'),
  by: 'kernel',
  isHeldBeside: true,
}

/** By the id of the probe; whatever is not here is expected as under the host's own kernel. */
export const differences: Readonly<Record<string, Difference>> = {
  'files.read-only': {
    because:
      'that a mount is read-only stands in its table alone, and whose a folder is, is looked at first; its /dev is its own, of root',
    expected: 'EROFS or EACCES for each, and mounts that are read-only',
    attempts: (trial, scene) => [
      ...alsoBy('EACCES')(trial).filter(({ asks }) => asks[0] === 'create'),
      readOnlyInTable(scene),
    ],
  },
  'files.nosuid': {
    because: 'the table does not say; capabilities.setuid and capabilities.of-files try the bits themselves',
    attempts: () => null,
  },
  'files.nodev': {
    because:
      'the table does not say; gVisor opens no device node of the host, and devices.make tries to make one',
    attempts: () => null,
  },
  'environment.start': {
    because: 'PID 1 is none of the host’s processes: what it was started with is asked inside',
    attempts: ({ attempts }) => attempts.filter(({ watch }) => watch === undefined),
  },
  'proc.environment-of-pid-1': {
    because: 'it can be read, and is empty: PID 1 wiped it before anything else',
    expected: 'EACCES, or nothing in it',
    attempts: () => [
      stopsOrFinds(['text', '/proc/1/environ'], ['EACCES', 'EPERM'], (text) =>
        text.replaceAll('\0', '').trim() === '' ? null : text.replaceAll('\0', ' ').slice(0, 80),
      ),
    ],
    by: 'supervisor',
    isHeldBeside: true,
  },
  'proc.memory-of-pid-1': {
    because: 'names of its files and mappings can be read, its memory and its channel cannot',
    expected: 'EACCES for its memory, ENXIO for its channel',
    attempts: () => [
      stops(['read', '/proc/1/mem'], ['EACCES', 'EPERM', 'EIO']),
      stops(['open-for-writing', '/proc/1/fd/3'], ['EACCES', 'EPERM', 'ENXIO']),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.switches': {
    because: 'the few that there are belong to gVisor’s root, and no flag of the folder is told',
    expected: 'EROFS, EACCES or ENOENT for each',
    attempts: (trial) => without('flags /proc/sys')(trial),
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.host-facts': {
    because: `of these it has /proc/cmdline alone; ${own}`,
    attempts: (trial) => [
      ...without('uncovered /proc/cmdline')(trial),
      finds(['text', '/proc/cmdline'], (text) => (text.includes('gvisor') ? null : text.slice(0, 80))),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.host-folders': {
    because: 'it has none of them, so that nothing needs a cover',
    attempts: ({ attempts }) => attempts.filter(({ asks }) => asks[0] === 'uncovered'),
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.oom-score': {
    because: 'the number inside means nothing; what counts is that of gVisor’s own process on the host',
    expected: '500 or more on the host, whatever is written inside',
    attempts: () => [
      stopsOrFinds(['oom-score', '-500'], ['EACCES', 'EPERM'], () => null),
      seen(
        'oom_score_adj of gVisor on the host',
        ({ pid }) => readFile(`/proc/${pid}/oom_score_adj`, 'utf8'),
        (text) => (Number(text) >= 500 ? null : text.trim()),
      ),
    ],
    by: 'limit',
    isHeldBeside: true,
  },
  'proc.sys': {
    because: own,
    expected: 'a /sys without firmware, kernel and control groups, and lo alone',
    attempts: () => [
      ...['fs/cgroup', 'kernel', 'firmware', 'module', 'power'].map((name) => only(`/sys/${name}`, [])),
      only('/sys/class/net', ['lo']),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.user': {
    because: 'there is no setgroups file, and setgroups takes a capability that nobody has',
    attempts: alsoBy('ENOENT'),
  },
  'devices.listed': {
    because: 'pts, fuse and net/tun are gVisor’s own, without any capability to use them with',
    expected: 'harmless nodes, and those of gVisor itself',
    attempts: ({ expected }) => [
      only('/dev', [...expected.split(' '), 'pts', 'fuse', 'net']),
      only('/dev/net', ['tun']),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'devices.of-the-host': {
    because: 'fuse and net/tun are there and gVisor’s own; devices.listed has them',
    attempts: without('stat /dev/fuse', 'stat /dev/net/tun'),
    by: 'kernel',
    isHeldBeside: true,
  },
  'namespaces.own': {
    because: 'it has net, pid and user namespaces alone, all of them its own',
    expected: 'none that is the daemon’s',
    attempts: alsoBy('ENOENT'),
    by: 'kernel',
    isHeldBeside: true,
  },
  'namespaces.counters': {
    because: 'a namespace there is memory of the sandbox, not of this kernel, and the filter refuses one',
    attempts: () => null,
  },
  'syscalls.i386': {
    because: 'no call of i386 is answered',
    expected: 'ENOSYS',
    attempts: alsoBy('ENOSYS'),
    by: 'kernel',
    isHeldBeside: true,
  },
  'syscalls.filter': {
    because: 'its status has no NoNewPrivs; PID 1 asked gVisor for it, and asked whether it holds',
    expected: 'Seccomp: 2',
    attempts: ({ attempts }) => [
      finds(['text', '/proc/self/status'], (text) => {
        const mode = /^Seccomp:\s+(\S+)/m.exec(text)?.[1] ?? '?'
        return mode === '2' ? null : `Seccomp: ${mode}`
      }),
      ...attempts.filter(({ asks }) => asks[0] === 'reach'),
    ],
  },
  'capabilities.sets': {
    because: 'it has no secure bits; without a capability none can be had by them',
    attempts: alsoBy('EINVAL'),
  },
  'network.abstract-sockets': {
    because: 'in a network of its own it has no abstract sockets at all',
    expected: 'EINVAL',
    attempts: alsoBy('EINVAL'),
    by: 'kernel',
    isHeldBeside: true,
  },
  'network.addresses': { ...otherwise, expected: 'EHOSTUNREACH' },
  'network.hostile-names': otherwise,
  'network.relay': {
    because: 'a sandbox with a way out is refused there, so that no relay is ever started',
    attempts: () => null,
  },
  'network.metadata': { ...otherwise, expected: 'EHOSTUNREACH' },
  'terminal.open': {
    because: 'it makes terminals of its own, which are nobody’s; a server’s own is none',
    expected: 'no terminal, and a session of its own',
    attempts: (trial) => [
      ...without('open-for-writing /dev/ptmx')(trial),
      stops(['open-for-writing', '/dev/tty'], ['ENXIO', 'EIO', 'ENOENT', 'EACCES']),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.to-be-seen': {
    because: `cmdline and sentry-meminfo are there, too; ${own}`,
    attempts: ({ expected }) => [
      only(
        '/proc',
        [...expected.split(' '), ...'cmdline sentry-meminfo mounts net self thread-self'.split(' ')],
        /^\d+$/,
      ),
    ],
    by: 'kernel',
    isHeldBeside: true,
  },
  'proc.signals-of-pid-1': {
    because:
      'a signal that waits there is memory of the sandbox, which the engine limits, not of this kernel',
    attempts: () => null,
  },
  'proc.start': {
    because: 'its status has neither, so that the process itself is asked',
    attempts: () => [finds(['start'], otherStart)],
  },
  'resources.processes': {
    because: 'the engine’s limit counts gVisor’s own threads, and gVisor may end when it gets no more',
    expected: 'EAGAIN, or the end of the whole sandbox',
    attempts: ({ attempts }) => attempts.map(isEndedWhole),
    probe: { isAlone: true, endsBy: 'end' },
  },
  'resources.memory': {
    because: 'the memory is gVisor’s, which the kernel ends as a whole, and the engine may tell why too late',
    expected: 'the end of the whole sandbox',
    attempts: ({ attempts }) => attempts.map(isEndedWhole),
    probe: { isAlone: true, endsBy: 'end' },
  },
  'resources.threads': {
    because: 'the engine’s limit counts gVisor’s own threads, and gVisor may end when it gets no more',
    expected: 'EAGAIN, or the end of the whole sandbox',
    attempts: ({ attempts }) => attempts.map(isEndedWhole),
    probe: { isAlone: true, endsBy: 'end' },
  },
  'resources.cpu': {
    because: 'gVisor counts the time of its processes by a clock that the host’s quota does not stop',
    attempts: ({ attempts }) => attempts.filter(({ watch }) => watch !== undefined),
  },
  'resources.descriptors': {
    because: 'there is no /proc/self/limits, so that the process itself is asked',
    attempts: ({ attempts }, { spec }) => [
      ...attempts.filter(({ asks }) => asks[0] === 'open-many'),
      ...held({ 7: spec.limits.openFiles }),
    ],
  },
  'resources.core': {
    because: 'there is no /proc/self/limits, so that the process itself is asked',
    attempts: (_trial, { spec }) => held({ 4: 0, 1: spec.limits.fileBytes }),
  },
  'resources.kernel': {
    because: 'signals and messages that wait are memory of the sandbox; the other two have their limits',
    attempts: (_trial, { spec }) => held({ 8: 65_536, 6: limitsWithRelay(spec).pids + 1 }),
  },
  'resources.watches': {
    because: 'watches are memory of the sandbox, which the engine limits, not of this kernel',
    attempts: () => null,
  },
  'ipc.kill-pid-1': {
    because: 'PID 1 has no protection from what it started: the whole sandbox ends with it, and nothing else',
    expected: 'PID 1 goes on, or the whole sandbox ends',
    attempts: () => [stops(['kill-init'], ['EBUSY', 'ended'], 'SIGKILL and SIGTERM to PID 1')],
    by: 'kernel',
    isHeldBeside: true,
    probe: { isAlone: true, endsBy: 'end' },
  },
}
