// The log of daemons in the background: one file and the one before it, so that one that is started for years fills no disk.
import {
  closeSync,
  fstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { errnoOf } from '../lib/missing.ts'

const keptBytes = 8 * 1024 * 1024

/** Opens the log, to read and to append to; one that has become long has stepped aside by then. */
export function openLog(path: string): number {
  const log = openSync(path, 'a+', 0o600)
  const { size, ino } = fstatSync(log)
  if (size < keptBytes) return log
  closeSync(log)
  stepAside(path, ino)
  return openSync(path, 'a+', 0o600)
}

/**
 * Many start at once, as a machine comes up. What would be moved may be the next log already, over the one that was: so it is moved
 * by who has claimed it, which only one can, and whom nobody comes before. A claim of one that is dead has one heir, too.
 */
function stepAside(path: string, ino: number): void {
  const claims = claimed(`${path}.${ino}`)
  if (claims === null) return
  try {
    const log = statSync(path)
    if (log.ino === ino && log.size >= keptBytes) renameSync(path, `${path}.1`)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  } finally {
    for (const claim of claims) rmSync(claim, { force: true })
  }
}

/** Claims it with a link that leads to our pid; what is returned is to be removed. Null where it is another's, who lives. */
function claimed(claim: string, dead: readonly string[] = []): readonly string[] | null {
  try {
    symlinkSync(String(process.pid), claim)
    return [...dead, claim]
  } catch (error) {
    if (errnoOf(error) === 'EPERM') return null // the file system has no links, and the log stays
    if (errnoOf(error) !== 'EEXIST') throw error
  }
  const claimer = claimerOf(claim)
  return claimer === null || isAlive(claimer) ? null : claimed(`${claim}-${claimer}`, [...dead, claim])
}

/** The pid that a claim leads to; 0 where it is none that we make; null where it has gone. */
function claimerOf(claim: string): number | null {
  try {
    return Number(readlinkSync(claim)) || 0
  } catch (error) {
    if (errnoOf(error) === 'EINVAL') return 0
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Where another process has that pid by now, the log is moved once that one is over. */
function isAlive(pid: number): boolean {
  if (pid <= 0) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}
