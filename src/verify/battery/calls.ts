// Probes of system calls: does a call get past every filter? Never made for real: see `reach` in sandbox/probes/calls.c.
import { finds, stops, type Attempt } from '../attempt.ts'
import { inapplicable } from '../gvisor/inapplicable.ts'
import type { ControlId } from '../arms/controls.ts'
import type { Probe, Scene, Trial } from '../probe.ts'
import { arch, callNumber } from '../lab/removal.ts'
import type { ProbeGroup } from '../result.ts'

/** A call by name, with the arguments that make it the one that is refused. */
type Call = readonly [name: string, ...args: readonly (number | string)[]]

const refusals = ['EPERM', 'ENOSYS', 'EAFNOSUPPORT', 'EPROTONOSUPPORT'] as const

/** What a probe of calls tries: those that this architecture has and that the profile does not allow by name. */
export const callTrial = ({ profile }: Scene, calls: readonly Call[]): Trial => {
  const granted = calls.filter(([name]) => profile.syscalls.allow.includes(name)).map(([name]) => name)
  const attempts = calls.flatMap(([name, ...args]): Attempt[] => {
    const number = callNumber(name)
    if (number === null || granted.includes(name)) return []
    return [stops(['reach', `${number}`, ...args.map(String)], refusals, [name, ...args].join(' '))]
  })
  const expected = 'refused by the filter'
  if (granted.length === 0)
    return attempts.length > 0
      ? { expected, attempts }
      : inapplicable(expected, `${arch} has none of these calls`, 'on an architecture that has one')
  const names = [...new Set(granted)].join(', ')
  return attempts.length > 0
    ? { expected, attempts, note: `open, since the profile grants ${names}` }
    : inapplicable(expected, `the profile grants ${names}`, 'where syscalls.allow does not name them')
}

/** Returns a probe of calls that the filter refuses. */
export const callProbe = (
  number: number,
  id: string,
  protects: string,
  calls: readonly Call[],
  group: ProbeGroup = 'syscalls',
  control: ControlId = 'seccomp',
): Probe => ({ id, number, group, protects, control, trial: (scene) => callTrial(scene, calls) })

const flags = {
  CLONE_NEWNS: 0x00020000,
  CLONE_NEWCGROUP: 0x02000000,
  CLONE_NEWUTS: 0x04000000,
  CLONE_NEWIPC: 0x08000000,
  CLONE_NEWUSER: 0x10000000,
  CLONE_NEWPID: 0x20000000,
  CLONE_NEWNET: 0x40000000,
} as const
export const callProbes: readonly Probe[] = [
  callProbe(
    12,
    'files.remount',
    'A server makes no read-only mount writable.',
    [['mount'], ['mount_setattr']],
    'files',
  ),
  callProbe(13, 'files.mount', 'A server mounts nothing.', [['mount'], ['fsmount'], ['move_mount']], 'files'),
  callProbe(14, 'files.unmount', 'A server takes no cover away.', [['umount2']], 'files'),
  callProbe(15, 'files.root', 'A server moves to no other root.', [['pivot_root'], ['chroot']], 'files'),
  callProbe(
    16,
    'files.mount-descriptors',
    'The newer calls for mounts are as shut as the old one.',
    [['fsopen'], ['fsconfig'], ['fspick'], ['open_tree'], ['open_tree_attr'], ['mount_setattr']],
    'files',
  ),
  callProbe(
    17,
    'files.handles',
    'No file is opened by a handle, around every path.',
    [['name_to_handle_at'], ['open_by_handle_at']],
    'files',
  ),
  callProbe(
    18,
    'devices.make',
    'A server makes no device node.',
    [
      ['mknod', 0, 0o020600, 0x103],
      ['mknod', 0, 0o060600, 0x700],
      ['mknodat', 0, 0, 0o020600, 0x103],
      ['mknodat', 0, 0, 0o060600, 0x700],
    ],
    'devices',
  ),
  callProbe(
    41,
    'namespaces.unshare',
    'A server leaves none of its namespaces for a new one.',
    Object.values(flags).map((flag) => ['unshare', flag] as const),
    'namespaces',
  ),
  callProbe(43, 'namespaces.enter', 'A server enters no namespace.', [['setns']], 'namespaces'),
  callProbe(46, 'syscalls.bpf', 'A server loads no program into the kernel.', [['bpf']]),
  callProbe(47, 'syscalls.perf', 'A server measures neither the kernel nor others.', [['perf_event_open']]),
  callProbe(48, 'syscalls.io-uring', 'No call is made where no filter sees it.', [
    ['io_uring_setup'],
    ['io_uring_enter'],
    ['io_uring_register'],
  ]),
  callProbe(49, 'syscalls.userfaultfd', 'A server cannot hold the kernel up at a page of its choice.', [
    ['userfaultfd'],
  ]),
  callProbe(50, 'syscalls.keys', 'A server uses no keyring of the kernel.', [
    ['add_key'],
    ['keyctl'],
    ['request_key'],
  ]),
  callProbe(51, 'syscalls.ptrace', 'A server traces nobody, not even its children.', [['ptrace']]),
  callProbe(52, 'syscalls.foreign-memory', 'A server reads and writes no other process’s memory.', [
    ['process_vm_readv'],
    ['process_vm_writev'],
    ['process_madvise'],
  ]),
  callProbe(53, 'syscalls.foreign-descriptors', 'A server takes no descriptor out of another process.', [
    ['pidfd_getfd'],
  ]),
  callProbe(54, 'syscalls.kcmp', 'A server learns nothing about the kernel’s own objects.', [['kcmp']]),
  callProbe(55, 'syscalls.modules', 'A server loads and removes neither kernel nor module.', [
    ['kexec_load'],
    ['kexec_file_load'],
    ['init_module'],
    ['finit_module'],
    ['delete_module'],
  ]),
  callProbe(
    56,
    'syscalls.machine',
    'A server neither restarts the machine nor changes its swap and quotas.',
    [['reboot'], ['swapon'], ['swapoff'], ['acct'], ['quotactl'], ['quotactl_fd']],
  ),
  callProbe(57, 'syscalls.kernel-log', 'A server does not read the kernel’s log.', [['syslog']]),
  callProbe(
    58,
    'syscalls.ports',
    'A server reaches no port of the hardware and changes no descriptor table.',
    [['iopl'], ['ioperm'], ['modify_ldt'], ['perf_event_open']],
  ),
  callProbe(59, 'syscalls.personality', 'A server does not turn off how its memory is laid out at random.', [
    ['personality', 0x0040000],
    ['personality', 0x6],
    ['personality', 0x0100000],
    ['personality', 0x0400000],
  ]),
  callProbe(60, 'syscalls.numa', 'A server moves no pages between nodes of memory.', [
    ['move_pages'],
    ['mbind'],
    ['get_mempolicy'],
    ['set_mempolicy'],
    ['set_mempolicy_home_node'],
    ['migrate_pages'],
  ]),
  callProbe(61, 'syscalls.fanotify', 'A server watches no file system as a whole.', [
    ['fanotify_init'],
    ['fanotify_mark'],
    ['lookup_dcookie'],
  ]),
  callProbe(62, 'syscalls.clock', 'A server does not set the machine’s clocks.', [
    ['settimeofday'],
    ['clock_settime'],
    ['adjtimex'],
    ['clock_adjtime'],
  ]),
  callProbe(63, 'syscalls.host-name', 'A server renames no machine and hangs no terminal up.', [
    ['sethostname'],
    ['setdomainname'],
    ['vhangup'],
  ]),
  callProbe(66, 'syscalls.new-calls', 'Calls that are new and say much of the host are shut.', [
    ['memfd_secret'],
    ['statmount'],
    ['listmount'],
    ['listns'],
    ['lsm_get_self_attr'],
    ['lsm_set_self_attr'],
    ['lsm_list_modules'],
    ['cachestat'],
    ['file_setattr'],
  ]),
  callProbe(
    94,
    'ipc.message-queues',
    'A server has no POSIX message queue.',
    [['mq_open'], ['mq_unlink'], ['mq_timedsend'], ['mq_timedreceive'], ['mq_notify'], ['mq_getsetattr']],
    'ipc',
  ),
  callProbe(
    98,
    'terminal.input',
    'A server types nothing into a terminal, however the request is spelled.',
    [
      ['ioctl', 0, 0x5412],
      ['ioctl', 0, '0x100005412'],
      ['ioctl', 0, 0x541c],
      ['ioctl', 0, 0x541d],
      ['ioctl', 0, 0x5423],
    ],
    'terminal',
  ),
  callProbe(
    109,
    'time.set',
    'The time of the machine, and timers that wake it, are not a server’s to set.',
    [['clock_settime'], ['settimeofday'], ['clock_adjtime']],
    'time',
  ),
  {
    id: 'namespaces.clone',
    number: 42,
    group: 'namespaces',
    protects: 'A server starts no process in a namespace of its own.',
    control: 'seccomp',
    trial: (scene) => {
      const calls = callTrial(
        scene,
        Object.values(flags).map((flag) => ['clone', flag] as const),
      )
      return { ...calls, attempts: [...calls.attempts, stops(['clone3-user'], ['ENOSYS'])] }
    },
  },
  {
    id: 'namespaces.nested',
    number: 44,
    group: 'namespaces',
    protects: 'A server builds no sandbox in its sandbox, in which it would have every capability.',
    control: 'no-new-namespaces',
    trial: () => ({
      expected: 'EPERM by the filter, ENOSPC by the counters',
      attempts: [stops(['unshare-user'], ['EPERM', 'ENOSPC'])],
    }),
  },
  {
    id: 'syscalls.unknown',
    number: 68,
    group: 'syscalls',
    protects: 'A call that no kernel has yet is refused before a kernel that has it could make it.',
    control: 'seccomp',
    trial: () => ({
      expected: 'ENOSYS by the filter',
      attempts: ['1000', '4000'].map((number) => stops(['reach', number], ['ENOSYS'], `call ${number}`)),
    }),
  },
  {
    id: 'syscalls.filter',
    number: 67,
    group: 'syscalls',
    protects: 'A filter is there, and no exec takes it off or adds privileges.',
    control: 'seccomp',
    trial: () => ({
      expected: 'Seccomp: 2, NoNewPrivs: 1',
      attempts: [
        finds(['text', '/proc/self/status'], (text) => {
          const of = (name: string): string => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(text)?.[1] ?? '?'
          const [mode, privileges] = [of('Seccomp'), of('NoNewPrivs')]
          return mode === '2' && privileges === '1' ? null : `Seccomp: ${mode}, NoNewPrivs: ${privileges}`
        }),
        stops(['reach', `${callNumber('reboot')}`], refusals, 'reboot, as a call that is refused'),
      ],
    }),
  },
]
