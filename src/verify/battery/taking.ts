// What a server takes of processes, memory and processors beyond its limits, and what is said where nothing holds them.
import type { Control } from '../../sandbox/cgroup/level.ts'
import type { EnforcedBy } from '../../sandbox/driver.ts'
import { type Attempt, finds, seen, stops } from '../attempt.ts'
import { heldByGroup } from '../lab/held.ts'
import type { Scene, Trial } from '../probe.ts'

const margin = 32
const aboveMemory = 67_108_864

/** What a host must have left for others, where more memory than a limit is taken: else its own want of it may be what ends that */
export const reserveBytes = 268_435_456

const cgroupVersion = (by: EnforcedBy): 1 | 2 | null =>
  by === 'cgroup-v1' ? 1 : by === 'cgroup-v2' ? 2 : null

/** An engine holds memory by whichever this machine has. */
export const memoryVersion = (by: EnforcedBy): 1 | 2 | 'either' | null =>
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
const spinMs = 600

/** The same, told in figures also where it was no more than was given: nothing but chance held it. */
const measured = (spin: Attempt, cpu: number): Attempt => ({
  ...spin,
  meaning(answer) {
    const meaning = spin.meaning(answer)
    return meaning.is === 'shut'
      ? { ...meaning, observed: `${Number(answer.text) / 1000} of ${cpu} processors` }
      : meaning
  },
})

/** Why nothing holds a limit, where the launch came up all the same; null where something does. */
const unlessHeld = (
  limit: 'memory' | 'pids' | 'cpu',
  { enforcedBy, groupsMissing }: Pick<Scene, 'enforcedBy' | 'groupsMissing'>,
): string | null =>
  enforcedBy[limit] === 'none'
    ? `nothing here holds limits.${limit}, and limits.enforcement.${limit} is best-effort: ${groupsMissing ?? 'no control group'}`
    : null

/** More processes or threads than the profile gives. */
export const takingTasks = (scene: Scene, how: 'fork-many' | 'thread-many'): Trial => {
  const { spec, enforcedBy } = scene
  const most = spec.limits.pids + margin
  const [expected, attempt] = [`EAGAIN below ${most}`, stops([how, `${most}`], ['EAGAIN'])]
  const lacking = unlessHeld('pids', scene)
  if (lacking !== null) return { expected, attempts: [attempt], outside: [], unenforced: lacking }
  const inIts = inGroup(cgroupVersion(enforcedBy.pids), 'pids', spec.limits.pids + ownTasks)
  return {
    expected,
    attempts: [attempt, ...(how === 'fork-many' ? inIts : [])],
    outside: [stops([how, `${most}`], [])],
    note: `held by ${enforcedBy.pids}`,
  }
}

/** More memory than the profile gives; `more` is to be known of what holds it. */
export const takingMemory = (scene: Scene, how: 'touch-shared' | 'touch-swapped', more = ''): Trial => {
  const { spec, enforcedBy, freeBytes } = scene
  const bytes = spec.limits.memoryBytes + aboveMemory
  const expected = 'ended, out of memory'
  // Without the limit, as its broken arm is, so much would be taken from the host.
  if (freeBytes < bytes + reserveBytes)
    return {
      expected,
      attempts: [],
      note: `it takes ${bytes} bytes, and this host has ${freeBytes} free`,
    }
  const attempts = [stops([how, `${bytes}`], ['oom'])]
  const lacking = unlessHeld('memory', scene)
  if (lacking !== null) return { expected, attempts, outside: [], unenforced: lacking }
  return {
    expected,
    attempts,
    outside: [stops([how, '33554432'], [], 'memory that no limit counts')],
    note: `held by ${enforcedBy.memory}${more}`,
  }
}

/** More processors than the profile gives. */
export const takingProcessors = (scene: Scene): Trial => {
  const { spec, enforcedBy } = scene
  const { cpu } = spec.limits
  const expected = `at most ${cpu} processors, over ${spinMs} ms`
  // An engine has control groups, too, and says nothing of which.
  const version = enforcedBy.cpu === 'engine' ? 'either' : cgroupVersion(enforcedBy.cpu)
  const quota = inGroup(version, 'cpu', cpu * 1.01)
  const spin = finds(
    ['spin', `${Math.ceil(cpu) + 1}`, `${spinMs}`],
    (text) => (Number(text) / 1000 <= cpu * slack ? null : `${Number(text) / 1000} of ${cpu} processors`),
    'processes that do nothing but compute',
  )
  const lacking = unlessHeld('cpu', scene)
  if (lacking !== null) return { expected, attempts: [measured(spin, cpu)], outside: [], unenforced: lacking }
  return { expected, attempts: [spin, ...quota], outside: quota, note: `held by ${enforcedBy.cpu}` }
}
