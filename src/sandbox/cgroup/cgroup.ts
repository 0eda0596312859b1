// The control groups of one daemon: a parent in each hierarchy, and below it one group for each instance.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { enough, SallyportError } from '../../errors.ts'
import { errnoOf, isShortage } from '../../lib/missing.ts'
import type { DaemonId, InstanceId } from '../../lib/ids.ts'
import { killDirectory, removeDirectory, removeIfEmpty } from './directory.ts'
import { controls, type CgroupBase, type CgroupSupport, type Control } from './level.ts'
import { limitFiles } from './limit-files.ts'
import { OomWatch } from './oom.ts'
import { isOwn } from '../proof.ts'
import type { Limits } from '../spec.ts'

/** How often the group that the daemon leaves is looked at, until nothing of its own is in it */
const mostLooks = 100

/** Of a launch's limits, those that groups can hold. */
export type GroupLimits = Pick<Limits, 'memoryBytes' | 'pids' | 'cpu'>

/** The daemon's groups; disposing kills what is in them and removes them. */
export interface CgroupRoot extends AsyncDisposable {
  readonly support: CgroupSupport
  /** Where the instances' groups are, for whoever cleans up after a daemon that died */
  readonly directories: readonly string[]
  /**
   * Makes an instance's groups and sets its limits, each where this machine can.
   *
   * Throws ERR_SANDBOX_UNENFORCEABLE, with nothing left behind, when the kernel refuses one, and ERR_SHORTAGE where it only has no room.
   */
  forInstance(id: InstanceId, limits: GroupLimits): InstanceCgroup
}

/** The groups of one instance. Whoever made them removes them. */
export interface InstanceCgroup {
  /** Files to which the launcher writes `0` to join, before it gives up its ids */
  readonly joinFiles: readonly string[]
  /** How often the kernel killed something in here for want of memory */
  oomKills(): number
  /** Calls the listener once, within 200 ms of the first such kill; not after `remove` */
  onOom(listener: () => void): void
  /** Sends SIGKILL to the whole tree; `remove` makes sure of it */
  kill(): void
  /** Kills what is left and removes the groups. Throws ERR_INTERNAL where the tree won't die within 5 s, ERR_SHORTAGE where nobody could look */
  remove(): Promise<void>
}

/**
 * Makes the daemon's parent group below each base that `detectCgroups` found.
 *
 * On version 2 it switches the controllers on, and where the base is the daemon's own group, moves the daemon and what it has
 * started to a leaf first: a group with processes in it can't set limits on its children. Throws ERR_SANDBOX_UNENFORCEABLE where that fails.
 */
export function createCgroups(support: CgroupSupport, daemon: DaemonId): CgroupRoot {
  const bases = distinct(Object.values(support.bases))
  try {
    for (const base of bases) makeParent(base, support, daemon)
  } catch (thrown) {
    for (const directory of groupDirectories(support, daemon)) removeIfEmpty(directory)
    throw thrown
  }
  return {
    support,
    directories: parentDirectories(support, daemon),
    forInstance: (id, limits) => createInstance(support, (base) => join(parentOf(base, daemon), id), limits),
    async [Symbol.asyncDispose]() {
      for (const base of bases) await removeDirectory(parentOf(base, daemon))
    },
  }
}

/** Returns every folder that `createCgroups` may make, so that they can be written down before the first is there. */
export function groupDirectories(support: CgroupSupport, daemon: DaemonId): readonly string[] {
  const bases = distinct(Object.values(support.bases))
  const leaves = bases.filter(({ version }) => version === 2).map((base) => leafOf(base, daemon))
  return [...parentDirectories(support, daemon), ...leaves]
}

/**
 * Those of them that the instances' groups are made in. The others hold the daemon and its helpers, none of which can remove what
 * it is in: systemd does, with the whole of what it made, and after a kill the next daemon.
 */
export function parentDirectories(support: CgroupSupport, daemon: DaemonId): readonly string[] {
  return distinct(Object.values(support.bases)).map((base) => parentOf(base, daemon))
}

function parentOf({ path }: CgroupBase, daemon: DaemonId): string {
  return join(path, `sallyport-${daemon}`)
}

/** Where the daemon itself goes if its own group is the base. */
function leafOf({ path }: CgroupBase, daemon: DaemonId): string {
  return join(path, `sallyport-${daemon}-daemon`)
}

function makeParent(base: CgroupBase, support: CgroupSupport, daemon: DaemonId): void {
  const parent = parentOf(base, daemon)
  const limits = base.version === 2 ? limitsAt(support, base) : []
  if (limits.length > 0) stepAside(base, leafOf(base, daemon))
  attempt(`make ${parent}`, () => mkdirSync(parent, { mode: 0o755 }))
  if (limits.length > 0) enable(parent, limits)
}

// In version 1 a thread that moves itself waits for nobody, and the launcher has but one. To move a process, even one's own, the
// kernel waits until no thread of the machine is being made or ended: 7 to 16 ms. Version 2 knows no other way to join.
const joinFile = { 1: 'tasks', 2: 'cgroup.procs' } as const

function createInstance(
  support: CgroupSupport,
  directoryOf: (base: CgroupBase) => string,
  limits: GroupLimits,
): InstanceCgroup {
  const bases = distinct(Object.values(support.bases))
  const directories = bases.map(directoryOf)
  const { memory, kill } = support.bases
  let watch: OomWatch | null = null
  try {
    for (const directory of directories)
      attempt(`make ${directory}`, () => mkdirSync(directory, { mode: 0o755 }))
    for (const control of controls) {
      const base = support.bases[control]
      if (base !== null) setLimit(base, control, directoryOf(base), limits)
    }
    if (memory !== null) watch = new OomWatch(directoryOf(memory), memory.version)
  } catch (thrown) {
    // Nobody has joined yet
    for (const directory of directories) removeIfEmpty(directory)
    throw thrown
  }
  return {
    joinFiles: bases.map((base) => join(directoryOf(base), joinFile[base.version])),
    oomKills: () => watch?.kills() ?? 0,
    onOom: (listener) => watch?.onFirst(listener),
    kill: () => {
      const target = kill ?? bases[0]
      if (target !== undefined) killDirectory(directoryOf(target))
    },
    async remove() {
      watch?.close()
      for (const directory of directories) await removeDirectory(directory)
    },
  }
}

function setLimit(base: CgroupBase, control: Control, directory: string, limits: GroupLimits): void {
  for (const { file, value, isOptional } of limitFiles(base.version, control, limits)) {
    if (isOptional && !existsSync(join(directory, file))) continue
    try {
      write(directory, file, value)
    } catch (thrown) {
      const isBounded =
        file === quotaFile && thrown instanceof SallyportError && thrown.details['errno'] === 'EINVAL'
      if (!isBounded) throw thrown
      // Version 1 refuses a quota above that of a group higher up, which holds then, and is the stricter: it is set here, too
      const above = quotaAbove(directory)
      if (above !== null && above >= leastQuotaUs) write(directory, file, above)
    }
  }
}

const quotaFile = 'cpu.cfs_quota_us'
/** The kernel takes none that is smaller */
const leastQuotaUs = 1000

/** The least of the quotas above a group, for the group's own period, µs; null where none can be seen, as from a container. */
function quotaAbove(directory: string): number | null {
  const numberIn = (group: string, file: string): number => Number(readFileSync(join(group, file), 'utf8'))
  const periodFile = 'cpu.cfs_period_us'
  let share = Infinity
  for (let group = dirname(directory); existsSync(join(group, quotaFile)); group = dirname(group)) {
    const quota = numberIn(group, quotaFile)
    if (quota > 0) share = Math.min(share, quota / numberIn(group, periodFile))
  }
  return share === Infinity ? null : Math.floor(share * numberIn(directory, periodFile))
}

/**
 * Moves the daemon, and whatever it has started, from a base that is its own group into a leaf beside the instances. Nobody else:
 * the next daemon kills who is left in the leaf of one that died.
 */
function stepAside({ path }: CgroupBase, leaf: string): void {
  const isRealRoot = !existsSync(join(path, 'cgroup.events'))
  const inside = (): string[] => readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
  if (isRealRoot || !inside().includes(String(process.pid))) return
  attempt(`make ${leaf}`, () => mkdirSync(leaf, { mode: 0o755 }))
  const own = (): string[] => inside().filter((pid) => isOwn(Number(pid), process.pid))
  // What one of them starts before it is moved itself is there at the next look.
  for (let looks = 0, left = own(); left.length > 0 && looks < mostLooks; looks++, left = own())
    for (const pid of left) moveUnlessEnded(pid, leaf)
}

function moveUnlessEnded(pid: string, group: string): void {
  try {
    write(group, 'cgroup.procs', pid)
  } catch (thrown) {
    if (!(thrown instanceof SallyportError) || thrown.details['errno'] !== 'ESRCH') throw thrown
  }
}

function enable(parent: string, limits: readonly Control[]): void {
  const line = limits.map((control) => `+${control}`).join(' ')
  // From the base down: a group can only hand on what it was handed
  for (const directory of [join(parent, '..'), parent]) write(directory, 'cgroup.subtree_control', line)
}

function limitsAt(support: CgroupSupport, base: CgroupBase): readonly Control[] {
  return controls.filter((control) => support.bases[control]?.path === base.path)
}

function distinct(bases: readonly (CgroupBase | null)[]): readonly CgroupBase[] {
  const byPath = new Map(bases.flatMap((base) => (base === null ? [] : [[base.path, base] as const])))
  return [...byPath.values()]
}

function write(directory: string, file: string, value: string | number): void {
  const path = join(directory, file)
  attempt(`write ${value} to ${path}`, () => writeFileSync(path, String(value), { flag: 'r+' }))
}

function attempt(act: string, run: () => unknown): void {
  try {
    run()
  } catch (thrown) {
    const errno = errnoOf(thrown) ?? 'unknown error'
    const isShort = isShortage(thrown)
    throw new SallyportError(
      isShort ? 'ERR_SHORTAGE' : 'ERR_SANDBOX_UNENFORCEABLE',
      `control groups: cannot ${act}: ${errno}; ${isShort ? enough : 'see `sallyport doctor`'}`,
      { errno },
      { cause: thrown },
    )
  }
}
