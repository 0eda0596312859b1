// Probes 100 to 107: a server that takes all it can gets what its profile says.
import { finds, stops } from '../attempt.ts'
import type { Probe } from '../probe.ts'

const numbers = { nofile: 7, core: 4, fsize: 1 } as const
const margin = 32
const aboveMemory = 67_108_864
const reserveBytes = 268_435_456

/** What `/proc/self/limits` says of one, both numbers the same. */
const held = (name: string, value: number) =>
  finds(
    ['text', '/proc/self/limits'],
    (text) => {
      const found = new RegExp(`^${name}\\s+(\\S+)\\s+(\\S+)`, 'm').exec(text)
      return found?.[1] === `${value}` && found[2] === `${value}` ? null : (found?.[1] ?? 'nothing')
    },
    `${name} is ${value}`,
  )

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
      attempts: [stops(['fork-many', `${spec.limits.pids + margin}`], ['EAGAIN'])],
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
