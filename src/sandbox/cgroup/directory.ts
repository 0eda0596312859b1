// One control group on disk: kill what is in it, wait until it is empty, remove it.
import { closeSync, constants, openSync, readdirSync, readFileSync, rmdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { SallyportError } from '../../errors.ts'
import { errnoOf, isShortage } from '../../lib/missing.ts'

/** Host pids of the processes in a group, not in those below it. Empty when the group is gone. */
export function processesIn(directory: string): readonly number[] {
  return ifPresent(() => readFileSync(join(directory, 'cgroup.procs'), 'utf8'), '')
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid)
}

/**
 * Sends SIGKILL to everything in a group and below it, once.
 *
 * Version 2 since Linux 5.14 does it in one write that a fork can't outrun. Elsewhere a process that forks meanwhile
 * may leave a child, and with no descriptor to be had nobody can be killed so, so whoever needs the group empty calls again
 * until it is: see `removeDirectory`.
 */
export function killDirectory(directory: string, short?: (thrown: unknown) => void): void {
  unlessShort(() => {
    const killed = ifPresent(() => {
      // Without O_CREAT: version 1 has no such file, and may not be asked to make one. Nobody but root may read it.
      const file = openSync(join(directory, 'cgroup.kill'), constants.O_WRONLY)
      try {
        writeSync(file, '1')
      } finally {
        closeSync(file)
      }
      return true
    }, false)
    if (killed) return
    for (const child of childrenOf(directory)) killDirectory(child, short)
    for (const pid of processesIn(directory)) signal(pid)
  }, short)
}

/**
 * Kills what is in a group and below it and removes it, children first. Returns at once when it is gone already; with no
 * descriptor or memory to look with it tries again.
 *
 * Throws ERR_INTERNAL, with the pids that are left, when it is not empty after `deadlineMs`: processes stuck in the kernel; and
 * ERR_SHORTAGE where there was nothing to look with to the last.
 */
export async function removeDirectory(directory: string, deadlineMs = 5000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  let shortage: unknown = null
  const short = (thrown: unknown): void => void (shortage = thrown)
  const isRemoved = (): boolean => unlessShort(() => removeIfEmpty(directory), short) ?? false
  for (let pauseMs = 1; !isRemoved(); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() > deadline) throw notRemoved(directory, deadlineMs, shortage)
    shortage = null
    killDirectory(directory, short)
    await setTimeout(pauseMs)
  }
}

function notRemoved(directory: string, deadlineMs: number, shortage: unknown): SallyportError {
  const left = unlessShort(() => processesIn(directory).join(' '))
  const what =
    shortage === null
      ? `is not empty ${deadlineMs} ms after SIGKILL: pids ${left || 'unknown'}`
      : `could not be looked at or killed for ${deadlineMs} ms: ${errnoOf(shortage)}; raise the limit of open files (LimitNOFILE=)`
  const [code, cause] =
    shortage === null ? (['ERR_INTERNAL'] as const) : (['ERR_SHORTAGE', { cause: shortage }] as const)
  return new SallyportError(code, `control group ${directory} ${what}`, { directory }, cause)
}

/**
 * Removes a group and those below it, unless there are processes in them. Returns whether it is gone. One with none below it, as
 * an instance's is, takes no descriptor.
 */
export function removeIfEmpty(directory: string): boolean {
  return (
    removeOne(directory) || (childrenOf(directory).map(removeIfEmpty).every(Boolean) && removeOne(directory))
  )
}

function removeOne(directory: string): boolean {
  try {
    rmdirSync(directory)
    return true
  } catch (thrown) {
    const code = errnoOf(thrown)
    if (code === 'ENOENT') return true
    // A group that has just lost its last process stays busy until the kernel has let go of it
    if (code === 'EBUSY' || code === 'ENOTEMPTY') return false
    throw thrown
  }
}

function childrenOf(directory: string): readonly string[] {
  const entries = ifPresent(() => readdirSync(directory, { withFileTypes: true }), [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name))
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (thrown) {
    // Gone meanwhile, which is what was wanted
    if (errnoOf(thrown) !== 'ESRCH') throw thrown
  }
}

/** Returns null where descriptors or memory have run out, of which `short` is told. */
function unlessShort<T>(act: () => T, short?: (thrown: unknown) => void): T | null {
  try {
    return act()
  } catch (thrown) {
    if (!isShortage(thrown)) throw thrown
    short?.(thrown)
    return null
  }
}

/** Groups vanish under their readers: the file or the folder may be gone, or the group dead with the file still open. */
function ifPresent<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (thrown) {
    const code = errnoOf(thrown)
    if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENOTDIR') return otherwise
    throw thrown
  }
}
