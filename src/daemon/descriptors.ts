// Descriptors that somebody forgot to close: whoever started the daemon, and Node where it could start no child.
import { ChildProcess } from 'node:child_process'
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

/** What Node hands down for one of a child's descriptors, as far as anything here depends on it. */
interface Handed {
  readonly handle?: { close(): void }
}
/** Node's own, which no type tells of: it starts the child that it is a method of, and puts what it made for it into `stdio`. */
type Start = (this: ChildProcess, options: { readonly stdio: readonly Handed[] }) => number

/**
 * From now on nothing of a child is left open that could not be started for want of a descriptor.
 *
 * The last that a start needs, after all pipes to the child, is a pipe for the start itself. Where that fails with EMFILE, Node
 * has our ends of the others, tells of the error, and forgets them: five sockets for each launch, as long as the daemon lives.
 */
export function closeUnstarted(): void {
  const start = Reflect.get(ChildProcess.prototype, 'spawn') as Start
  const startOrClose: Start = function (options) {
    const status = start.call(this, options)
    // It had given up before it made streams of them, so nobody else can ever close them.
    if ((this.stdio as ChildProcess['stdio'] | undefined) === undefined)
      for (const { handle } of options.stdio) handle?.close()
    return status
  }
  Reflect.set(ChildProcess.prototype, 'spawn', startOrClose)
}
