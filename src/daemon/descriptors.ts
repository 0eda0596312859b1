// Descriptors that whoever started the daemon forgot to close: they must not reach a child of ours.
import { closeSync, readdirSync, readFileSync } from 'node:fs'

const closeOnExec = 0o2000000

/**
 * Closes every descriptor above 2 that is not close-on-exec, and returns their numbers. Node opens all of its own with
 * O_CLOEXEC, so what lacks it was inherited; Node itself marks only those below the first gap in the numbers.
 */
export function closeInherited(): readonly number[] {
  const numbers = readdirSync('/proc/self/fd').map(Number)
  const inherited = numbers.filter((fd) => fd > 2 && !isCloseOnExec(fd))
  for (const fd of inherited) closeSync(fd)
  return inherited
}

function isCloseOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags === undefined || (Number.parseInt(flags, 8) & closeOnExec) !== 0
  } catch {
    return true // gone already: the descriptor that read the folder itself
  }
}
