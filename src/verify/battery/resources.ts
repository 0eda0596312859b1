// Probes 100 to 108, 115, 116 and 130: a server that takes all it can gets what its profile says.
import { comes, finds, seen, stops } from '../attempt.ts'
import { swapOfGroup } from '../lab/held.ts'
import type { Probe } from '../probe.ts'
import { memoryVersion, takingMemory, takingProcessors, takingTasks } from './taking.ts'

const numbers = { nofile: 7, core: 4, fsize: 1 } as const

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

const floodBytes = 16_777_216

/** What the program says that refuses every end, each time that it is asked. */
const refusal = 'asked to end, and goes on'

export const resourceProbes: readonly Probe[] = [
  {
    id: 'resources.processes',
    number: 100,
    group: 'resources',
    protects: 'A server that forks without end stops at the processes that its profile gives it.',
    control: 'process-limit',
    isAlone: true,
    isApart: true,
    trial: (scene) => takingTasks(scene, 'fork-many'),
  },
  {
    id: 'resources.memory',
    number: 101,
    group: 'resources',
    protects:
      'A server that takes more memory than its profile gives it is ended, and its whole tree with it.',
    control: 'memory-limit',
    isAlone: true,
    isApart: true,
    endsBy: 'oom',
    trial: (scene) => takingMemory(scene, 'touch-shared'),
  },
  {
    id: 'resources.swap',
    number: 130,
    group: 'resources',
    protects: 'A server does not get around its memory by swapping.',
    control: 'memory-limit',
    isAlone: true,
    isApart: true,
    endsBy: 'oom',
    trial(scene) {
      const { enforcedBy, hasSwap } = scene
      const version = memoryVersion(enforcedBy.memory)
      const expected = 'nothing beyond its memory'
      if (version === null)
        return takingMemory(
          scene,
          'touch-swapped',
          `, which counts what is swapped; this machine has ${hasSwap ? '' : 'no '}swap`,
        )
      const swap = seen(
        'swap of the control group',
        async ({ pid }) => `${await swapOfGroup(pid, version)}`,
        (text) => {
          if (text === 'uncounted') return hasSwap ? 'not counted, and this machine swaps' : null
          return text === '0' ? null : text
        },
      )
      const isThere = finds(['text', '/proc/self/status'], () => null, 'a process in it')
      return { expected, attempts: [isThere, swap], outside: [swap] }
    },
  },
  {
    id: 'resources.cpu',
    number: 102,
    group: 'resources',
    protects: 'A server that computes without end has no more of the processors than its profile gives it.',
    control: 'cpu-limit',
    isAlone: true,
    isApart: true,
    trial: takingProcessors,
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
          async (program) => {
            const { terminate, kill, ended, says } = program
            const over = ended.then(() => 'it ended by itself')
            terminate()
            const heard = Promise.race([says(refusal), over])
            const sooner = await comes(heard, program, 'it did not hear that it was to end').finally(kill)
            if (sooner !== undefined) return sooner
            await comes(over, program, 'still there')
            return 'gone'
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
    isApart: true,
    trial: (scene) => takingTasks(scene, 'thread-many'),
  },
]
