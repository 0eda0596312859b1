// Proof that a process is gone, and that a pid still means the process that it meant.
import { readFileSync } from 'node:fs'
import { errnoOf } from '../lib/missing.ts'

/** A process of this boot: pids are reused, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number
  readonly parent: number
  /** Clock ticks after boot, as in field 22 of /proc/PID/stat */
  readonly startTime: string
}

/** Returns who has the pid now, or null where nobody has it or only a zombie is left of it. */
export const identify = (pid: number): ProcessIdentity | null => {
  const fields = statFields(pid)
  if (fields === null) return null
  const [state, parent] = fields
  const startTime = fields[19]
  if (state === undefined || parent === undefined || startTime === undefined || 'ZXx'.includes(state))
    return null
  return { pid, parent: Number(parent), startTime }
}

/**
 * Says whether the process has ended.
 *
 * Of a PID 1 it says more: the kernel makes it a zombie only after every other process of its namespace is gone.
 */
export const isGone = ({ pid, startTime }: ProcessIdentity): boolean => identify(pid)?.startTime !== startTime

/** Sends SIGKILL to that very process; a pid that now belongs to another one is left alone. */
export const killExactly = (process_: ProcessIdentity): void => {
  if (isGone(process_)) return
  try {
    process.kill(process_.pid, 'SIGKILL')
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error
  }
}

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
