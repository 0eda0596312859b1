// Which values go into which files of a control group, for either version: pure, so that both can be read side by side.
import type { Limits } from '../spec.ts'
import type { Control } from './level.ts'

/** One write to a file of a group. */
export interface LimitFile {
  readonly file: string
  readonly value: string
  /** Kernels can be built or started without it, and the limit holds all the same */
  readonly isOptional: boolean
}

/** The sandbox tool and PID 1 are in the groups too, and are not the server's to count. */
const ownTasks = 2
const cpuPeriodUs = 100_000

/** Returns the writes that set one limit, in the order in which the kernel takes them. */
export function limitFiles(
  version: 1 | 2,
  control: Control,
  limits: Pick<Limits, 'memoryBytes' | 'pids' | 'cpu'>,
): readonly LimitFile[] {
  const quotaUs = Math.max(1000, Math.round(limits.cpu * cpuPeriodUs))
  const tasks = limits.pids + ownTasks
  const table: Record<1 | 2, Record<Control, readonly LimitFile[]>> = {
    1: {
      memory: [
        always('memory.limit_in_bytes', limits.memoryBytes),
        // Memory and swap together; where swap is not accounted for, nothing of the group is swapped out instead
        ifPresent('memory.memsw.limit_in_bytes', limits.memoryBytes),
        ifPresent('memory.swappiness', 0),
        // Not in the limit above, and of the machine: what waits in TCP connections, of which a sandbox has a loopback of its own
        ifPresent('memory.kmem.tcp.limit_in_bytes', Math.floor(limits.memoryBytes / 4)),
      ],
      pids: [always('pids.max', tasks)],
      cpu: [always('cpu.cfs_period_us', cpuPeriodUs), always('cpu.cfs_quota_us', quotaUs)],
    },
    2: {
      memory: [
        always('memory.max', limits.memoryBytes),
        ifPresent('memory.swap.max', 0),
        // Who runs out takes the whole tree along: half a server is none
        always('memory.oom.group', 1),
      ],
      pids: [always('pids.max', tasks)],
      cpu: [always('cpu.max', `${quotaUs} ${cpuPeriodUs}`)],
    },
  }
  return table[version][control]
}

function always(file: string, value: number | string): LimitFile {
  return { file, value: String(value), isOptional: false }
}

function ifPresent(file: string, value: number): LimitFile {
  return { file, value: String(value), isOptional: true }
}
