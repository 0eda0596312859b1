// Finds where on this machine limits can be set: version 2 delegated to us, version 2 as root, version 1, or nowhere.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { isOwn } from '../proof.ts'

/** What a control group can hold down. */
export type Control = 'memory' | 'pids' | 'cpu'

/** An existing directory of a cgroup file system below which groups of ours can be made. */
export interface CgroupBase {
  readonly version: 1 | 2
  readonly path: string
}

/** Where each limit can be set, and where a whole tree can be killed in one write; null where nowhere. */
export interface CgroupSupport {
  readonly level: 'v2-delegated' | 'v2' | 'v1' | 'none'
  readonly bases: Readonly<Record<Control | 'kill', CgroupBase | null>>
  /** Why a limit has no base, and the command that mends it; null where all have one */
  readonly cause: string | null
  readonly mend: string | null
}

/** What detection reads: `/proc/self/mountinfo`, `/proc/self/cgroup`, our pid and effective uid. */
export interface CgroupView {
  readonly mountinfo: string
  readonly self: string
  readonly pid: number
  readonly uid: number
}

/** The limits, in the order in which they are reported. */
export const controls: readonly Control[] = ['memory', 'pids', 'cpu']

/**
 * Looks for the best level, control by control, and changes nothing.
 *
 * Our own group comes first, so that whatever bounds the daemon bounds the sandboxes too. Only where that can't be
 * used, root takes the top of the hierarchy, and others a folder `sallyport` that root made there and gave to them.
 */
export function detectCgroups(view: CgroupView = thisProcess()): CgroupSupport {
  const mounts = parseMounts(view.mountinfo)
  const own = parseOwn(view.self)
  const v2 = mounts
    .filter(({ version }) => version === 2)
    .flatMap((mount) => candidates(mount, own.get(''), view))
  const bases: Record<Control | 'kill', CgroupBase | null> = {
    memory: null,
    pids: null,
    cpu: null,
    kill: null,
  }
  for (const control of controls) {
    const unified = v2.find((path) => canLimit(path, control, view.pid))
    const v1 = mounts
      .filter(({ version, controllers }) => version === 1 && controllers.includes(control))
      .flatMap((mount) => candidates(mount, own.get(control), view))
      .find(isWritable)
    if (unified !== undefined) bases[control] = { version: 2, path: unified }
    else if (v1 !== undefined) bases[control] = { version: 1, path: v1 }
  }
  const kill = bases.memory?.version === 2 ? bases.memory.path : v2.find((path) => canHoldProcesses(path))
  // Beside version 1 it would be joined for nothing else, and joining it costs every launch 7 to 16 ms: see `joinFile`.
  const isOnlyGroup = !Object.values(bases).some((base) => base?.version === 1)
  if (kill !== undefined && isOnlyGroup) bases.kill = { version: 2, path: kill }
  return { level: levelOf(bases, view.uid), bases, ...explain(bases, mounts, view) }
}

function thisProcess(): CgroupView {
  const [mountinfo, self] = ['/proc/self/mountinfo', '/proc/self/cgroup'].map((file) => readOr(file, ''))
  return { mountinfo: mountinfo ?? '', self: self ?? '', pid: process.pid, uid: process.geteuid?.() ?? -1 }
}

interface HierarchyMount {
  readonly version: 1 | 2
  /** The group that is the root of this mount, as in `/proc/self/cgroup` */
  readonly root: string
  readonly point: string
  readonly controllers: readonly string[]
}

/** Lines of proc_pid_mountinfo(5): id, parent, device, root, mount point, options, …, `-`, type, source, super options. */
function parseMounts(mountinfo: string): readonly HierarchyMount[] {
  const mounts: HierarchyMount[] = []
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [root, point] = before.split(' ').slice(3, 5).map(unescape)
    const [type, , options = ''] = after.split(' ')
    if (root === undefined || point === undefined) continue
    if (type === 'cgroup2') mounts.push({ version: 2, root, point, controllers: [] })
    if (type === 'cgroup') mounts.push({ version: 1, root, point, controllers: options.split(',') })
  }
  return mounts
}

function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
}

/** Our group in each hierarchy, by controller; version 2 has the empty name. */
function parseOwn(self: string): ReadonlyMap<string, string> {
  const own = new Map<string, string>()
  for (const line of self.split('\n')) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (names !== undefined && path !== undefined) for (const name of names.split(',')) own.set(name, path)
  }
  return own
}

function candidates(mount: HierarchyMount, own: string | undefined, { uid }: CgroupView): readonly string[] {
  const { version, root, point } = mount
  const relative = own === undefined ? '..' : posix.relative(root, own)
  const outside = relative === '..' || relative.startsWith('../')
  // Version 2 lets nobody but root move processes between branches, so a folder given to us is of no use there
  const others = uid === 0 ? [point] : version === 1 ? [givenFolder(point)] : []
  return [...(outside ? [] : [join(point, relative)]), ...others].filter((path) => existsSync(path))
}

function givenFolder(point: string): string {
  return join(point, 'sallyport')
}

/**
 * Version 2 sets limits only on the children of a group that has switched the controller on, and such a group (but the
 * real root, which has no `cgroup.events`) holds no processes: where only the daemon and its own are in it, they can step aside.
 */
function canLimit(path: string, control: Control, pid: number): boolean {
  if (!canHoldProcesses(path) || !isWritable(join(path, 'cgroup.subtree_control'))) return false
  const listed = (file: string): boolean => readOr(join(path, file), '').split(/\s+/).includes(control)
  if (!listed('cgroup.controllers')) return false
  return listed('cgroup.subtree_control') || !existsSync(join(path, 'cgroup.events')) || isAlone(path, pid)
}

/** Moving a process needs `cgroup.procs` of the group above both its old and its new place. */
function canHoldProcesses(path: string): boolean {
  return isWritable(path) && isWritable(join(path, 'cgroup.procs'))
}

/** Whether nobody else is in it: what we have started, such as our guard, we take along. */
function isAlone(path: string, pid: number): boolean {
  const inside = (): readonly number[] =>
    readOr(join(path, 'cgroup.procs'), '').split('\n').filter(Boolean).map(Number)
  const unknown = inside().filter((one) => one !== pid && !isOwn(one, pid))
  if (unknown.length === 0) return true
  // One that has ended meanwhile is not in it any more; one of another pid namespace, which is 0 here, is.
  const still = inside()
  return !unknown.some((one) => still.includes(one))
}

/** Whether it may be written to: not so where it is mounted read-only, as in most containers. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** An unreadable file says nothing, which here always means less support, never more. */
function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return otherwise
  }
}

function levelOf(bases: CgroupSupport['bases'], uid: number): CgroupSupport['level'] {
  const versions = controls.map((control) => bases[control]?.version)
  if (versions.includes(2)) return uid === 0 ? 'v2' : 'v2-delegated'
  return versions.includes(1) ? 'v1' : 'none'
}

function explain(
  bases: CgroupSupport['bases'],
  mounts: readonly HierarchyMount[],
  { uid }: CgroupView,
): Pick<CgroupSupport, 'cause' | 'mend'> {
  const missing = controls.filter((control) => bases[control] === null)
  if (missing.length === 0) return { cause: null, mend: null }
  const old = missing.flatMap(
    (control) => mounts.find(({ controllers }) => controllers.includes(control)) ?? [],
  )
  const folders = [...new Set(old.map(({ point }) => givenFolder(point)))].join(' ')
  const cause = `no control group that holds ${missing.join(', ')} can be written by uid ${uid}`
  if (uid === 0 || mounts.length === 0)
    return {
      cause,
      mend: 'mount the cgroup file systems read-write, with the memory, pids and cpu controllers',
    }
  return {
    cause,
    mend:
      old.length > 0
        ? `as root: install -d -o ${uid} ${folders}`
        : 'start it in a group of its own: the daemon by `sallyport serve --background`, where this user has a systemd, and whatever else by systemd-run --user --scope -p Delegate=yes sallyport …',
  }
}
