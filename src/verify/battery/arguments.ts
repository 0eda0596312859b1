// Probes 112 to 114: calls that are there for other arguments, and calls that nobody needs any more.
import type { Probe } from '../probe.ts'
import { callProbe } from './calls.ts'

const [setuid, create] = [0o4000, 0o100]
const [processGroup, user] = [1, 2]
const firstProcess = 1

export const argumentProbes: readonly Probe[] = [
  callProbe(
    112,
    'syscalls.setuid-bits',
    'A server makes no file that would make whoever starts it the server’s own user.',
    [
      ['chmod', 0, setuid | 0o755],
      ['fchmod', 0, setuid | 0o755],
      ['fchmodat', 0, 0, setuid | 0o755],
      ['fchmodat2', 0, 0, setuid | 0o755],
      ['creat', 0, setuid | 0o755],
      ['open', 0, create, setuid | 0o755],
      ['openat', 0, 0, create, setuid | 0o755],
      ['open', 0, '0x410002', setuid | 0o755],
      ['openat', 0, 0, '0x410002', setuid | 0o755],
      ['openat2'],
      ['mknod', 0, 0o100000 | setuid],
      ['mknodat', 0, 0, 0o100000 | setuid],
    ],
  ),
  callProbe(
    113,
    'syscalls.priorities',
    'A server gives nobody another priority, and sets no limits of the process that holds its sandbox.',
    [
      ['setpriority', processGroup],
      ['setpriority', user],
      ['setpriority', 0, firstProcess],
      ['sched_setscheduler'],
      ['sched_setparam'],
      ['sched_setattr'],
      ['sched_setaffinity', firstProcess],
      ['ioprio_set'],
      ['prlimit64', firstProcess],
      ['prctl', 0x23],
      ['prctl', 0x43],
      ['prctl', 0x3e],
    ],
  ),
  callProbe(114, 'syscalls.retired', 'Calls that programs do without are not there to be attacked.', [
    ['vmsplice'],
    ['remap_file_pages'],
    ['io_setup'],
    ['io_destroy'],
    ['io_submit'],
    ['io_cancel'],
    ['io_getevents'],
    ['io_pgetevents'],
    ['_sysctl'],
    ['uselib'],
    ['ustat'],
    ['sysfs'],
    ['nfsservctl'],
    ['create_module'],
    ['query_module'],
    ['get_kernel_syms'],
    ['set_thread_area'],
    ['get_thread_area'],
    ['epoll_ctl_old'],
    ['epoll_wait_old'],
    ['afs_syscall'],
    ['getpmsg'],
    ['putpmsg'],
    ['security'],
    ['tuxcall'],
    ['vserver'],
  ]),
]
