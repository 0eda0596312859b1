// Probes 100 to 108, 115, 116 and 130: a server that takes all it can gets what its profile says.
import type { Control } from '../../sandbox/cgroup/level.ts'
import type { EnforcedBy } from '../../sandbox/driver.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { type Attempt, finds, seen, stops } from '../attempt.ts'
import { heldByGroup, swapOfGroup } from '../held.ts'
import type { Probe } from '../probe.ts'

const numbers = { nofile: 7, core: 4, fsize: 1 } as const
const margin = 32
const aboveMemory = 67_108_864
const reserveBytes = 268_435_456

/** What `/proc/self/limits` says of one: both numbers that at most. A daemon that stands lower hands on what it has. */
const held = (name: string, value: number) =>
  finds(
    ['text', '/proc/self/limits'],
    (text) => {
      const [, ...found] = new RegExp(`^${name}\\s+(\\S+)\\s+(\\S+)`, 'm').exec(text) ?? []
      const isHeld = found.length === 2 && found.every((it) => Number(it) <= value)
      return isHeld ? null : (found[0] ?? 'nothing')
    },
    `${name} is ${value}`,
  )

const cgroupVersion = (by: EnforcedBy): 1 | 2 | null =>
  by === 'cgroup-v1' ? 1 : by === 'cgroup-v2' ? 2 : null

/** An engine holds memory by whichever this machine has. */
const memoryVersion = (by: EnforcedBy): 1 | 2 | 'either' | null =>
  by === 'engine' ? 'either' : cgroupVersion(by)

/** What stands in the sandbox's control group, where one holds the limit: another mechanism may hide that it does not. */
const inGroup = (version: 1 | 2 | 'either' | null, control: Control, most: number): Attempt[] => {
  if (version === null) return []
  return [
    seen(
      `limit of ${control} in its control group`,
      async ({ pid }) => `${(await heldByGroup(pid, version, control)) ?? 'none'}`,
      (text) => (Number(text) <= most ? null : `${text}, expected ${most} at most`),
    ),
  ]
}

/** The launcher, the sandbox tool and PID 1 count in the group, too, and the relay of a sandbox that has one. */
const ownTasks = 8
/** A quota is counted in periods, of which a measurement sees one more in part. */
const slack = 1.35
const [spinMs, floodBytes] = [600, 16_777_216]
const [askedMs, killedMs] = [150, 5000]

export const resourceProbes: readonly Probe[] = [
  {
    id: 'resources.processes',
    number: 100,
    group: 'resources',
    protects: 'A server that forks without end stops at the processes that its profile gives it.',
    control: 'process-limit',
    isAlone: true,
    trial: ({ spec, enforcedBy }) => ({
      expected: `EAGAIN below ${spec.limits.pids + margin}`,
      attempts: [
        stops(['fork-many', `${spec.limits.pids + margin}`], ['EAGAIN']),
        ...inGroup(cgroupVersion(enforcedBy.pids), 'pids', spec.limits.pids + ownTasks),
      ],
      outside: [stops(['fork-many', `${spec.limits.pids + margin}`], [])],
      note: `held by ${enforcedBy.pids}`,
    }),
  },
  {
    id: 'resources.memory',
    number: 101,
    group: 'resources',
    protects:
      'A server that takes more memory than its profile gives it is ended, and its whole tree with it.',
    control: 'memory-limit',
    isAlone: true,
    endsBy: 'oom',
    trial: ({ spec, enforcedBy, freeBytes }) => {
      const bytes = spec.limits.memoryBytes + aboveMemory
      const expected = 'ended, out of memory'
      // Without the limit, as its broken arm is, so much would be taken from the host.
      if (freeBytes < bytes + reserveBytes)
        return {
          expected,
          attempts: [],
          note: `it takes ${bytes} bytes, and this host has ${freeBytes} free`,
        }
      return {
        expected,
        attempts: [stops(['touch-shared', `${bytes}`], ['oom'])],
        outside: [stops(['touch-shared', '33554432'], [], 'memory that no limit counts')],
        note: `held by ${enforcedBy.memory}`,
      }
    },
  },
  {
    id: 'resources.swap',
    number: 130,
    group: 'resources',
    protects: 'A server does not get around its memory by swapping.',
    control: 'memory-limit',
    trial({ enforcedBy }) {
      const version = memoryVersion(enforcedBy.memory)
      const expected = 'nothing beyond its memory'
      if (version === null)
        return {
          expected,
          attempts: [],
          settled: `memory is held by ${enforcedBy.memory}, swap counted with it`,
        }
      const swap = seen(
        'swap of the control group',
        async ({ pid }) => `${await swapOfGroup(pid, version)}`,
        (text) => (text === '0' || text === 'uncounted' ? null : text),
      )
      return { expected, attempts: [swap], outside: [swap] }
    },
  },
  {
    id: 'resources.cpu',
    number: 102,
    group: 'resources',
    protects: 'A server that computes without end has no more of the processors than its profile gives it.',
    control: 'cpu-limit',
    isAlone: true,
    trial: ({ spec, enforcedBy }) => {
      const { cpu } = spec.limits
      const expected = `at most ${cpu} processors, over ${spinMs} ms`
      // An engine has control groups, too, and says nothing of which.
      const version = enforcedBy.cpu === 'engine' ? 'either' : cgroupVersion(enforcedBy.cpu)
      const quota = inGroup(version, 'cpu', cpu * 1.01)
      if (quota.length === 0)
        return {
          expected,
          attempts: [],
          settled: `nothing on this machine holds ${cpu} processors, and the profile does not insist`,
        }
      const spin = finds(
        ['spin', `${Math.ceil(cpu) + 1}`, `${spinMs}`],
        (text) => (Number(text) / 1000 <= cpu * slack ? null : `${Number(text) / 1000} processors`),
        'processes that do nothing but compute',
      )
      return { expected, attempts: [spin, ...quota], outside: quota, note: `held by ${enforcedBy.cpu}` }
    },
  },
  {
    id: 'resources.output',
    number: 104,
    group: 'resources',
    protects: 'A server that writes without end waits until somebody reads: nothing piles up in the daemon.',
    control: 'output',
    trial: () => ({
      expected: `EAGAIN far below ${floodBytes} bytes`,
      attempts: [stops(['flood', `${floodBytes}`], ['EAGAIN'], `${floodBytes} bytes that nobody reads`)],
    }),
  },
  {
    id: 'resources.end',
    number: 108,
    group: 'resources',
    protects: 'A server that goes on whatever it is asked is ended all the same, with all that it started.',
    control: 'end',
    isAlone: true,
    trial: () => ({
      expected: 'there after SIGTERM, gone after the end',
      attempts: [
        finds(['stay'], () => null, 'refusing every end'),
        seen(
          'asked to end, then ended',
          async ({ terminate, kill, ended }) => {
            const over = ended.then(() => true)
            terminate()
            if (await Promise.race([over, pause(askedMs, false)])) return 'it ended by itself'
            kill()
            return (await Promise.race([over, pause(killedMs, false)])) ? 'gone' : 'still there'
          },
          (text) => (text === 'gone' ? null : text),
        ),
      ],
      outside: [stops(['refuse-to-end'], [], 'a process of one’s own that is asked to end')],
    }),
  },
  {
    id: 'resources.kernel',
    number: 115,
    group: 'resources',
    protects:
      'A server locks no memory, queues few signals, and watches few files: the kernel’s memory is not its own.',
    control: 'resource-limits',
    trial: ({ spec, countsPerNamespace }) => ({
      expected: 'the limits of each',
      attempts: [
        held('Max locked memory', 65_536),
        held('Max pending signals', 1024),
        held('Max msgqueue size', 0),
        ...(countsPerNamespace
          ? [held('Max processes', spec.limits.pids + (spec.network.mode === 'none' ? 1 : 4))]
          : []),
      ],
    }),
  },
  {
    id: 'resources.watches',
    number: 116,
    group: 'resources',
    protects: 'A server watches a project’s files, and no more than that.',
    control: 'namespace-counters',
    trial: () => ({
      expected: '128 instances, 65536 watches',
      attempts: [
        ['instances', 128],
        ['watches', 65_536],
      ].map(([kind, most]) =>
        finds(['text', `/proc/sys/user/max_inotify_${kind}`], (text) =>
          Number(text) <= Number(most) ? null : text.trim(),
        ),
      ),
    }),
  },
  {
    id: 'resources.descriptors',
    number: 103,
    group: 'resources',
    protects: 'A server has no more files open than its profile says.',
    control: 'resource-limits',
    trial: ({ spec }) => ({
      expected: `EMFILE below ${spec.limits.openFiles}`,
      attempts: [
        stops(['open-many', `${spec.limits.openFiles}`], ['EMFILE']),
        held('Max open files', spec.limits.openFiles),
      ],
      outside: [stops(['open-many', '64'], [], 'descriptors below every limit')],
    }),
  },
  {
    id: 'resources.core',
    number: 105,
    group: 'resources',
    protects:
      'A server that crashes leaves no image of its memory, and no file larger than its profile says.',
    control: 'resource-limits',
    trial: ({ spec }) => ({
      expected: 'core 0, files as the profile says',
      attempts: [held('Max core file size', 0), held('Max file size', spec.limits.fileBytes)],
    }),
  },
  {
    id: 'resources.raise',
    number: 106,
    group: 'resources',
    protects: 'A server raises none of its limits.',
    control: 'capabilities',
    trial: () => ({
      expected: 'EPERM for each',
      attempts: Object.values(numbers).map((number) => stops(['move-limit', `${number}`, '1'], ['EPERM'])),
      outside: [stops(['move-limit', `${numbers.nofile}`, '-1'], [], 'a limit lowered, which anybody may')],
    }),
  },
  {
    id: 'resources.threads',
    number: 107,
    group: 'resources',
    protects: 'Threads count as processes do, and stop where they do.',
    control: 'process-limit',
    isAlone: true,
    trial: ({ spec, enforcedBy }) => ({
      expected: `EAGAIN below ${spec.limits.pids + margin}`,
      attempts: [stops(['thread-many', `${spec.limits.pids + margin}`], ['EAGAIN'])],
      note: `held by ${enforcedBy.pids}`,
    }),
  },
]
