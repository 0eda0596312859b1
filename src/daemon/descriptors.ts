// Descriptors that somebody forgot to close: whoever started the daemon, and Node where it could start no child.
import { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { SallyportError } from '../errors.ts'

const closeOnExec = 0o2000000

/**
 * Closes every descriptor above 2 that is not close-on-exec, and returns their numbers. Node opens all of its own with
 * O_CLOEXEC, so what lacks it was inherited; Node itself marks only those below the first gap in the numbers.
 */
export function closeInherited(): readonly number[] {
  const numbers = listed().map(Number)
  const inherited = numbers.filter((fd) => fd > 2 && !isCloseOnExec(fd))
  for (const fd of inherited) closeSync(fd)
  return inherited
}

function listed(): readonly string[] {
  try {
    return readdirSync('/proc/self/fd')
  } catch (error) {
    const message = `/proc/self/fd cannot be read, so what was inherited would stay open: ${String(error)}; start it where /proc is mounted`
    throw new SallyportError('ERR_SANDBOX_UNENFORCEABLE', message, {}, { cause: error })
  }
}

function isCloseOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags === undefined || (Number.parseInt(flags, 8) & closeOnExec) !== 0
  } catch {
    return true // gone already: the descriptor that read the folder itself
  }
}

/** How a child's descriptors are asked for, as far as anything here depends on it: each pipe takes two of ours while it starts. */
type Start = (this: ChildProcess, options: { readonly stdio?: string | readonly unknown[] }) => number

/** What a start needs beside the pipes to the child: one for itself, and what other threads may open meanwhile */
const besidePipes = 2 + 6

/**
 * From now on a child that can't be started for want of descriptors leaves none of them open.
 *
 * The last that a start needs, after all pipes to the child, is a pipe for the start itself. Where that fails with EMFILE, Node
 * has our ends of the others, tells of the error, and forgets them: five sockets for each launch, as long as the daemon lives.
 * Closing them then breaks Node's memory, so it is not to get so far: where there are too few for all, none is left for the first.
 */
export function failEarly(): void {
  const start = Reflect.get(ChildProcess.prototype, 'spawn') as Start
  const startOrFail: Start = function (options) {
    const needed = 2 * pipesIn(options.stdio) + besidePipes
    const held = hold(needed)
    if (held.length < needed) return lettingGo(held, () => start.call(this, options))
    lettingGo(held, () => undefined)
    return start.call(this, options)
  }
  Reflect.set(ChildProcess.prototype, 'spawn', startOrFail)
}

const pipesIn = (stdio: string | readonly unknown[] = 'pipe'): number =>
  (typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio).filter((kind) => isPipe.has(kind)).length

/** What is left out is a pipe, or nothing. */
const isPipe: ReadonlySet<unknown> = new Set(['pipe', 'overlapped', 'ipc', null, undefined])

/** Opens so many, or as many as there are. */
function hold(count: number): readonly number[] {
  const held: number[] = []
  try {
    while (held.length < count) held.push(openSync('/dev/null', 'r'))
  } catch {
    // None is left, or no memory for one.
  }
  return held
}

function lettingGo<T>(held: readonly number[], act: () => T): T {
  try {
    return act()
  } finally {
    for (const fd of held) closeSync(fd)
  }
}
