// Proof that a process is gone, and that a pid still means the process that it meant.
import { readdirSync, readFileSync } from 'node:fs'
import { errnoOf } from '../lib/missing.ts'

/** How often a list of children is read at most, where one of them is reaped during each reading. */
const mostReadings = 100

/** A process of this boot: pids are reused, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number
  readonly parent: number
  readonly session: number
  /** Clock ticks after boot, as in field 22 of /proc/PID/stat */
  readonly startTime: string
}

/** Returns who has the pid now, or null where nobody has it or only a zombie is left of it. */
export const identify = (pid: number): ProcessIdentity | null => {
  const fields = statFields(pid)
  if (fields === null) return null
  const [state, parent, , session] = fields
  const startTime = fields[19]
  if (state === undefined || parent === undefined || startTime === undefined || 'ZXx'.includes(state))
    return null
  return { pid, parent: Number(parent), session: Number(session), startTime }
}

/**
 * Says whether the process has provably ended; without a descriptor to look with, nothing is proven.
 *
 * Of a PID 1 it says more: the kernel makes it a zombie only after every other process of its namespace is gone.
 */
export const isGone = (process_: ProcessIdentity): boolean => look(process_) === 'gone'

/** Says whether the process, or the parent that it had, has provably ended: the kernel has given it another one then. */
export const isGoneOrOrphan = (process_: ProcessIdentity): boolean => {
  const found = seen(process_)
  return found !== null && (found.now === null || found.now.parent !== process_.parent)
}

/** Sends SIGKILL to that very process; a pid that now belongs to another one, or to nobody knows whom, is left alone. */
export const killExactly = (process_: ProcessIdentity): void => {
  if (look(process_) !== 'there') return
  try {
    process.kill(process_.pid, 'SIGKILL')
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error
  }
}

/** Says whether a process stands still by a signal or for a debugger; false where that is not to be seen. */
export const isStopped = (pid: number): boolean => {
  const [state = ''] = unlessShort(() => statFields(pid)) ?? []
  return state === 'T' || state === 't'
}

/**
 * Returns a process's children, without those of which only a zombie is left.
 *
 * The kernel's list skips a living child where one before it is reaped while it is read (proc(5) calls it reliable only for
 * frozen processes): what names somebody who is no child any more is read again.
 */
export const childrenOf = (pid: number): readonly ProcessIdentity[] => {
  for (let readings = 1; ; readings++) {
    const listed = childPids(pid).map((child) => ({ pid: child, parent: parentOf(child) }))
    if (readings < mostReadings && listed.some(({ parent }) => parent !== pid)) continue
    return processes(listed.map((child) => child.pid)).filter(({ parent }) => parent === pid)
  }
}

/** The same as far as it can be seen, for whoever looks again: none where descriptors or memory have run out, or /proc hides them. */
export const childrenNow = (pid: number): readonly ProcessIdentity[] =>
  unlessHidden(() => childrenOf(pid)) ?? []

/**
 * Whether a process is `ancestor`, or was started by it or by one that it started, as their parents are now. Of one that has
 * ended, or that is not to be seen, nobody can say so.
 */
export const isOwn = (pid: number, ancestor: number): boolean => {
  try {
    for (let readings = 1; readings <= mostReadings && identify(pid) !== null; readings++) {
      let at: number | null = pid
      while (at !== null && at > 1 && at !== ancestor) at = identify(at)?.parent ?? null
      if (at !== null) return at === ancestor
      // One between them ended, and gave its children away.
    }
    return false
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error // as proc says of whom it hides
    return false
  }
}

/**
 * Sends SIGKILL to every process of a session. Its number is not given away while one of them is there, whether or not its
 * leader lives; so it names them for sure.
 */
export const killSession = (session: number): void => {
  for (const member of unlessHidden(() =>
    allPids().flatMap((pid) => unlessHidden(() => identify(pid)) ?? []),
  ) ?? [])
    if (member.session === session) killExactly(member)
}

const look = (process_: ProcessIdentity): 'there' | 'gone' | 'unknown' => {
  const found = seen(process_)
  if (found === null) return 'unknown'
  return found.now === null ? 'gone' : 'there'
}

/** That very process as it is now, null where it has ended; null altogether where that is not to be seen. */
const seen = ({ pid, startTime }: ProcessIdentity): { readonly now: ProcessIdentity | null } | null => {
  const found = unlessShort(() => ({ now: identify(pid) }))
  return found && { now: found.now?.startTime === startTime ? found.now : null }
}

/** Returns null where descriptors or memory have run out, which says nothing of what was asked. */
const unlessShort = <T>(ask: () => T): T | null => {
  try {
    return ask()
  } catch (error) {
    if (!['EMFILE', 'ENFILE', 'ENOMEM'].includes(errnoOf(error) ?? '')) throw error
    return null
  }
}

/** The same where `hidepid` hides it from this user. */
const unlessHidden = <T>(ask: () => T): T | null => {
  try {
    return unlessShort(ask)
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
    return null
  }
}

const processes = (pids: readonly number[]): ProcessIdentity[] =>
  pids.map(identify).filter((found) => found !== null)

// A kernel without CONFIG_PROC_CHILDREN has no such file: then everybody is looked at, and whose child he is.
const childPids = (pid: number): readonly number[] => {
  try {
    return numbers(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' '))
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    return allPids().filter((other) => parentOf(other) === pid)
  }
}

// A zombie has its parent until it is reaped.
const parentOf = (pid: number): number => Number(statFields(pid)?.[1] ?? -1)

const allPids = (): readonly number[] => numbers(readdirSync('/proc'))

const numbers = (words: readonly string[]): number[] => words.filter((word) => /^\d+$/.test(word)).map(Number)

// The name in parentheses may hold spaces and parentheses itself: the fields start behind the last one.
const statFields = (pid: number): string[] | null => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return line.slice(line.lastIndexOf(')') + 2).split(' ')
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOENT' || code === 'ESRCH') return null
    throw error
  }
}
