// What runs on this machine, read from /proc: for proofs that nothing is left.
import { readdirSync, readFileSync } from 'node:fs'

export interface Process {
  readonly pid: number
  readonly parent: number
  readonly uid: number
  readonly state: string
  readonly argv: readonly string[]
}

/** Returns the processes of a uid that are more than zombies. */
export const processesOf = (uid: number): readonly Process[] =>
  pids().flatMap((pid) => {
    const found = read(pid)
    return found !== null && found.uid === uid && !'ZX'.includes(found.state) ? [found] : []
  })

/** Returns the living processes of which one argument is exactly the word. */
export const processesWith = (word: string): readonly Process[] =>
  pids().flatMap((pid) => {
    const found = read(pid)
    return found?.argv.includes(word) === true ? [found] : []
  })

/** Returns the pids of a process's children. */
export const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

/** Returns the living processes of bubblewrap's sandboxes, from the launcher to PID 1, whose daemon is gone: an engine's containers are never below a daemon. */
export const orphanedSandboxes = (): readonly Process[] =>
  pids().flatMap((pid) => {
    const found = read(pid)
    const isSandbox =
      found !== null &&
      found.argv[1] !== 'container' &&
      (found.argv[0] === 'sallyport-init' || found.argv.includes('/sallyport/init'))
    return isSandbox && !'ZX'.includes(found.state) && !isBelowNode(found.parent) ? [found] : []
  })

/** Returns the pid of a process's parent; that of nobody where it has ended. */
export const parentOf = (pid: number): number => read(pid)?.parent ?? 0

/** Returns the letter of what a process does: `S` where it waits, `T` where it was stopped, `X` where there is none. */
export const stateOf = (pid: number): string => read(pid)?.state ?? 'X'

const isBelowNode = (pid: number): boolean => {
  const found = pid > 1 ? read(pid) : null
  return found !== null && (/(^|\/)node[^/]*$/.test(found.argv[0] ?? '') || isBelowNode(found.parent))
}

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

const read = (pid: number): Process | null => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return {
      pid,
      parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]),
      uid: Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]),
      state: /^State:\s+(\w)/m.exec(status)?.[1] ?? 'X',
      argv: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1),
    }
  } catch {
    return null // it ended meanwhile
  }
}
