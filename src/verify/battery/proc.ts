// Probes 26 to 37, 40, 45 and 111: what /proc and /sys show of the host, and what the kernel says of a server.
import { basename } from 'node:path'
import { sandboxUid } from '../../sandbox/bubblewrap/argv.ts'
import { finds, stops, stopsOrFinds } from '../attempt.ts'
import { absent } from '../gvisor/inapplicable.ts'
import type { Probe } from '../probe.ts'

const ourOwn = new Set(['init', 'egress', 'sallyport-probe'])
const sysrq = '/proc/sysrq-trigger'
const closed = ['EACCES', 'EPERM'] as const
const switches = [
  'kernel/core_pattern',
  'kernel/modprobe',
  'kernel/hostname',
  'kernel/shmmax',
  'vm/overcommit_memory',
  'vm/drop_caches',
  'net/ipv4/ip_forward',
]

const words = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const amiss = (found: readonly string[]): string | null =>
  found.length === 0 ? null : found.slice(0, 5).join(', ')

export const procProbes: readonly Probe[] = [
  {
    id: 'proc.processes',
    number: 26,
    group: 'proc',
    protects: 'A server sees its own processes and nobody else’s.',
    control: 'pid-namespace',
    trial: () => ({
      expected: 'PID 1, the relay of a sandbox that has one, and its own',
      attempts: [
        finds(['processes'], (text) =>
          amiss(words(text).filter((line) => !ourOwn.has((line.split(' ')[1] ?? '').slice(0, 15)))),
        ),
      ],
    }),
  },
  {
    id: 'proc.environment-of-pid-1',
    number: 27,
    group: 'proc',
    protects: 'The environment with which the sandbox was built is not to be read.',
    control: 'pid-1',
    trial: () => ({
      expected: 'EACCES',
      attempts: [stops(['text', '/proc/1/environ'], closed)],
      outside: [stops(['text', '/proc/{main}/environ'], [])],
    }),
  },
  {
    id: 'proc.arguments-of-pid-1',
    number: 28,
    group: 'proc',
    protects:
      'The arguments with which the sandbox was built, paths of the host among them, are not to be read.',
    control: 'first-process',
    trial: ({ canaries }) => {
      // Its last part alone, which nothing else has: the rest may have letters that come back byte by byte.
      const folder = basename(canaries.folder)
      const wrong = (text: string): string | null =>
        text.includes(folder) || text.includes('bwrap') ? text.replaceAll('\0', ' ').slice(0, 80) : null
      return {
        expected: 'no path of the host',
        attempts: [stopsOrFinds(['text', '/proc/1/cmdline'], closed, wrong)],
        outside: [stopsOrFinds(['text', '/proc/{main}/cmdline'], [], wrong)],
      }
    },
  },
  {
    id: 'proc.memory-of-pid-1',
    number: 29,
    group: 'proc',
    protects: 'PID 1, which opens the sandbox’s gate, is not to be read into or taken from.',
    control: 'pid-1',
    trial: () => ({
      expected: 'EACCES for each',
      attempts: ['mem', 'maps', 'fd/0', 'fdinfo'].map((name) => stops(['read', `/proc/1/${name}`], closed)),
      outside: ['maps', 'fdinfo'].map((name) => stops(['read', `/proc/{main}/${name}`], [])),
    }),
  },
  {
    id: 'proc.switches',
    number: 30,
    group: 'proc',
    protects: 'No switch of the kernel can be set: core_pattern would run a program as the host’s root.',
    control: 'proc-sys',
    trial: () => ({
      expected: 'a read-only mount, and EROFS, EACCES or ENOENT for each',
      attempts: [
        finds(
          ['flags', '/proc/sys'],
          (text) => (text.startsWith('ro') ? null : `mounted ${text}`),
          'mount of /proc/sys',
        ),
        ...switches.map((name) =>
          stops(['open-for-writing', `/proc/sys/${name}`], ['EROFS', 'EACCES', 'ENOENT']),
        ),
      ],
      outside: [
        finds(
          ['flags', '/proc/sys'],
          (text) => (text.startsWith('ro') ? null : `mounted ${text}`),
          'mount of /proc/sys',
        ),
      ],
    }),
  },
  {
    id: 'proc.sysrq',
    number: 31,
    group: 'proc',
    protects: 'The key combinations that stop or restart the machine are not there.',
    control: 'proc-masks',
    trial: ({ masked }) =>
      masked.includes(sysrq) ? covered([sysrq]) : absent(`this kernel has no ${sysrq}`, covered([sysrq])),
  },
  {
    id: 'proc.host-facts',
    number: 32,
    group: 'proc',
    protects: 'Addresses, logs, hardware and load of the host’s kernel are covered.',
    control: 'proc-masks',
    trial: ({ masked }) =>
      covered([
        ...new Set([...tellsMost, ...masked.filter((path) => !folders.includes(path) && path !== sysrq)]),
      ]),
  },
  {
    id: 'proc.host-folders',
    number: 33,
    group: 'proc',
    protects: 'Folders of /proc about the host’s hardware and drivers are empty.',
    control: 'proc-masks',
    trial: ({ masked }) => {
      const there = covered(masked.filter((path) => folders.includes(path)))
      return { ...there, attempts: [...there.attempts, ...masked.map(unchangeable)] }
    },
  },
  {
    id: 'proc.oom-score',
    number: 34,
    group: 'proc',
    protects: 'A server does not make itself the last to be ended when memory is short.',
    control: 'capabilities',
    trial: () => ({
      expected: 'EACCES',
      attempts: [
        stops(['oom-score', '-500'], ['EACCES', 'EPERM']),
        finds(['text', '/proc/self/oom_score_adj'], (text) => (Number(text) >= 500 ? null : text.trim())),
      ],
      outside: [stops(['oom-score', '500'], [], 'the same file, written with what anybody may')],
    }),
  },
  {
    id: 'proc.sys',
    number: 35,
    group: 'proc',
    protects: 'There is no /sys: no firmware, no devices, no control groups, no uevent helper.',
    control: 'mount-plan',
    trial: ({ driver }) => ({
      expected: driver === 'docker' ? 'an empty /sys' : 'ENOENT for each',
      attempts: [
        // An engine always makes the folder, which is covered by an empty one.
        ...(driver === 'docker' ? [] : [stops(['stat', '/sys'], ['ENOENT'])]),
        ...['fs/cgroup', 'kernel', 'firmware', 'class/net'].map((name) =>
          stops(['stat', `/sys/${name}`], ['ENOENT']),
        ),
      ],
    }),
  },
  {
    id: 'proc.network-tables',
    number: 36,
    group: 'proc',
    protects: 'Who listens on the host and who is connected to whom is not to be read.',
    control: 'net-namespace',
    trial: ({ canaries }) => ({
      expected: 'nothing of the host’s',
      attempts: [
        stopsOrFinds(['text', '/proc/net/tcp'], ['ENOENT', ...closed], (text) =>
          text.includes(`0100007F:${canaries.port.toString(16).toUpperCase().padStart(4, '0')}`)
            ? 'a listener of the host'
            : null,
        ),
        stopsOrFinds(['text', '/proc/net/unix'], ['ENOENT', ...closed], (text) =>
          text.includes(canaries.abstract) ? 'a socket of the host' : null,
        ),
      ],
    }),
  },
  {
    id: 'proc.user',
    number: 37,
    group: 'proc',
    protects: 'A server is one ordinary user of the host, never root, and changes no groups.',
    control: 'user-mapping',
    trial: ({ isRoot, driver }) => ({
      expected: 'one uid that is not 0, setgroups: deny',
      attempts: [
        finds(['text', '/proc/self/uid_map'], (text) => {
          const [inside, outside, length, more] = text.trim().split(/\s+/)
          const isOne = more === undefined && length === '1' && Number(outside) > 0
          return isOne && inside === `${sandboxUid}` ? null : text.trim().slice(0, 80)
        }),
        // Only root can let go of groups: a daemon of anybody else keeps its own.
        finds(['text', '/proc/self/status'], (text) => {
          const groups = words(/^Groups:(.*)$/m.exec(text)?.[1]?.trim().replaceAll(' ', '\n') ?? '')
          const gid = /^Gid:\s*(\d+)/m.exec(text)?.[1]
          // An engine gives a process its own group as the only further one.
          const more = driver === 'docker' ? groups.filter((group) => group !== gid) : groups
          return (isRoot || driver === 'docker') && more.length > 0 ? `groups ${more.join(' ')}` : null
        }),
        finds(['text', '/proc/self/setgroups'], (text) => (text.trim() === 'deny' ? null : text.trim())),
      ],
    }),
  },
  {
    id: 'namespaces.own',
    number: 40,
    group: 'namespaces',
    protects: 'A server shares no namespace with the daemon.',
    control: 'namespaces',
    trial: ({ namespaces }) => ({
      expected: 'seven namespaces, none the daemon’s',
      attempts: Object.entries(namespaces).map(([kind, hosts]) =>
        finds(['link', `/proc/self/ns/${kind}`], (text) => (text === hosts ? `the daemon’s ${kind}` : null)),
      ),
    }),
  },
  {
    id: 'namespaces.counters',
    number: 45,
    group: 'namespaces',
    protects: 'The kernel itself counts a new namespace as one too many, should the filter fail.',
    control: 'namespace-counters',
    trial: () => ({
      expected: '0 for each kind',
      attempts: ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'time'].map((kind) =>
        finds(['text', `/proc/sys/user/max_${kind}_namespaces`], (text) =>
          text.trim() === '0' ? null : text.trim(),
        ),
      ),
    }),
  },
  {
    id: 'proc.to-be-seen',
    number: 111,
    group: 'proc',
    protects:
      'Of the host a server sees its processors, memory and load, which programs need, and no further fact.',
    control: 'proc-masks',
    trial: () => ({
      expected: visible.join(' '),
      attempts: [
        finds(['facts', '/proc'], (text) => amiss(words(text).filter((name) => !visible.includes(name)))),
      ],
    }),
  },
]

/** What /proc has beside processes and is not covered: no kernel hides these, and none tells of anybody. */
const visible = words(`
cgroups
cpuinfo
devices
execdomains
filesystems
loadavg
meminfo
misc
stat
sys
uptime
version
version_signature
dynamic_debug
`)

/** These whatever the launch thinks of them: a cover that is forgotten is one that nobody lists. */
const tellsMost =
  'kcore kmsg kallsyms keys key-users config.gz cmdline timer_list sched_debug interrupts iomem ioports slabinfo vmallocinfo'
    .split(' ')
    .map((name) => `/proc/${name}`)

const unchangeable = (path: string) =>
  finds(['flags', path], (text) => (text.startsWith('ro') ? null : `mounted ${text}`), `cover of ${path}`)

const folders = ['scsi', 'bus', 'fs', 'irq', 'acpi', 'asound', 'driver', 'tty', 'pressure', 'sysvipc'].map(
  (name) => `/proc/${name}`,
)

const covered = (paths: readonly string[]) => ({
  expected: 'covered, or empty',
  attempts: paths.map((path) => stops(['uncovered', path], ['EACCES', 'EPERM', 'ENODATA', 'ENOENT'])),
})
