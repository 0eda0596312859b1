// The disks that the daemon's folders are on: for root some of the run's own, and what it is to have no room on one.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isRoot } from '../support/user.ts'
import { limit } from './parts.ts'
import type { Stage } from './stage.ts'

/** Room for what is there at any time, and for the journal of each second: 65 records of 1 KB, and eight times as much */
const roomBytes = { base: 50 * 1024 * 1024, second: 512 * 1024 }
/** Room for sockets and notes, and how many of both there may be */
const small = 'size=4m,nr_inodes=1k'

/** Mounts a disk for the state that a run of so many seconds does not fill; disposing unmounts it. */
export const mountStateDisk = (folder: string, seconds: number): Disposable =>
  mountDisk(folder, `size=${Math.ceil(roomBytes.base + roomBytes.second * seconds)}`)

/** Mounts one for what comes and goes. */
export const mountSmallDisk = (folder: string): Disposable => mountDisk(folder, small)

function mountDisk(folder: string, room: string): Disposable {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `${room},mode=700`, 'tmpfs', folder])
  return { [Symbol.dispose]: () => void execFileSync('umount', ['-l', folder]) }
}

/** Takes all the room that there is for state; returns what gives it back. Where there is no such disk, files of the daemon grow no longer. */
export function takeRoom({ at, pid }: Stage): () => void {
  if (isRoot) return fillDisk(at.stateDir)
  return pid === null ? () => undefined : limit(pid, 'fsize', 4096)
}

/** The same on a small disk, where there is room for no further name either. */
export function takeAllRoom(disk: string): () => void {
  const mend = fillDisk(disk)
  const folder = join(disk, 'names')
  try {
    mkdirSync(folder, { mode: 0o700 })
    for (let n = 0; ; n++) writeFileSync(join(folder, `${n}`), '')
  } catch {
    // that was the point
  }
  return () => {
    rmSync(folder, { recursive: true, force: true })
    mend()
  }
}

function fillDisk(disk: string): () => void {
  const filler = join(disk, 'filler')
  const file = openSync(filler, 'w')
  const bytes = Buffer.alloc(4 * 1024 * 1024)
  try {
    for (;;) writeSync(file, bytes)
  } catch {
    // that was the point
  } finally {
    closeSync(file)
  }
  return () => rmSync(filler, { force: true })
}
