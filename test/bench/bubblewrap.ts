// Bubblewrap alone, with next to nothing to mount: what any sandbox of it takes here.
import { readFileSync } from 'node:fs'
import { descendantsOf } from '../support/leaks.ts'
import { until } from './until.ts'

/** Its options; a program follows. */
export const bareSandbox = [
  '--unshare-all',
  '--die-with-parent',
  '--ro-bind',
  '/',
  '/',
  '--dev',
  '/dev',
  '--proc',
  '/proc',
]

/** Resolves when the sandbox below this `bwrap` has all its mounts. */
export async function built(pid: number): Promise<void> {
  await until('bubblewrap has built its sandbox', () =>
    descendantsOf(pid).some((child) => hasMounts(child.pid)),
  )
}

/** While it builds, everything lies below one of two folders that go away at the end. */
function hasMounts(pid: number): boolean {
  try {
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    return mounts.includes(' /dev/pts ') && !/ \/(?:new|old)root/.test(mounts)
  } catch {
    return false // it has just begun
  }
}
