// The log of daemons in the background: one file and the one before it, so that one that is started for years fills no disk.
import { closeSync, fstatSync, linkSync, openSync, renameSync, statSync, unlinkSync } from 'node:fs'
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
 * by who has a second name for it, which only one can have, and whom nobody comes before.
 */
function stepAside(path: string, ino: number): void {
  const claim = `${path}.${ino}`
  try {
    linkSync(path, claim)
  } catch (error) {
    if (isAnothers.has(errnoOf(error))) return
    throw error
  }
  try {
    if (statSync(claim).ino === ino) renameSync(path, `${path}.1`)
  } finally {
    unlinkSync(claim)
  }
}

/** It is being moved, or is gone; or the file system has no second names, and it stays. */
const isAnothers: ReadonlySet<string | null> = new Set(['EEXIST', 'ENOENT', 'EPERM'])
