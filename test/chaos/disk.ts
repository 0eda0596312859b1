// The disk that state is on: for root one of the run's own, and what it is to have no room.
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isRoot } from '../support/user.ts'
import { limit } from './parts.ts'
import type { Stage } from './stage.ts'

/** Room for what is there at any time, and for the journal of each second: 65 records of 1 KB, and eight times as much */
const roomBytes = { base: 50 * 1024 * 1024, second: 512 * 1024 }

/** Mounts a disk that a run of so many seconds does not fill; disposing unmounts it. */
export function mountDisk(folder: string, seconds: number): Disposable {
  const size = Math.ceil(roomBytes.base + roomBytes.second * seconds)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', folder])
  return { [Symbol.dispose]: () => void execFileSync('umount', ['-l', folder]) }
}

/** Takes all the room that there is; returns what gives it back. Where there is no such disk, files of the daemon grow no longer. */
export function takeRoom({ disk, pid }: Stage): () => void {
  if (isRoot) return fillDisk(disk)
  return pid === null ? () => undefined : limit(pid, 'fsize', 4096)
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
