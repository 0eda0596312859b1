// What a test may not leave behind: processes, sockets, mounts, control groups.
import { readdirSync, readFileSync } from 'node:fs'

export interface ChildProcess {
  readonly pid: number
  readonly name: string
}

/** The living children of a process, zombies apart. */
export function childrenOf(parent: number): readonly ChildProcess[] {
  return processes().filter(({ ppid, state }) => ppid === parent && state !== 'Z')
}

/** All processes below a process, zombies apart; looked for once, since each look at the machine's processes takes milliseconds. */
export function descendantsOf(parent: number): readonly ChildProcess[] {
  const living = Map.groupBy(
    processes().filter(({ state }) => state !== 'Z'),
    ({ ppid }) => ppid,
  )
  const below = (pid: number): readonly ChildProcess[] => {
    const children = living.get(pid) ?? []
    living.delete(pid)
    return [...children, ...children.flatMap((child) => below(child.pid))]
  }
  return below(parent)
}

/** A zombie is none: how soon those are taken away is up to the machine's own PID 1. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false // it is gone
    throw error
  }
}

/** Processes whose command line names the text. */
export function processesWith(text: string): readonly number[] {
  return pids().filter((pid) => pid !== process.pid && commandLine(pid).includes(text))
}

/** Processes of a group, those that have ended aside. */
export function processesOfGroup(group: number): readonly number[] {
  return pids().filter((pid) => groupOf(pid) === group)
}

/** The group of a process, or null where that has ended. */
export function groupOf(pid: number): number | null {
  if (!isAlive(pid)) return null
  try {
    const [, group] = /^\d+ \(.*\) \S \d+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return Number(group)
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  }
}

interface Status extends ChildProcess {
  readonly ppid: number
  readonly state: string
}

function processes(): readonly Status[] {
  return pids().flatMap((pid) => {
    try {
      const match = /^\d+ \((.*)\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))
      return match === null
        ? []
        : [{ pid, name: match[1] ?? '', state: match[2] ?? '', ppid: Number(match[3]) }]
    } catch {
      return [] // it has just ended
    }
  })
}

function pids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** Folders of the control groups of one daemon, or of each of some, in every hierarchy. */
export function cgroupsOf(...daemons: readonly string[]): readonly string[] {
  return foldersBelow('/sys/fs/cgroup').filter((path) => daemons.some((daemon) => path.includes(daemon)))
}

function foldersBelow(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${folder}/${name}`)
      .flatMap((path) => [path, ...foldersBelow(path)])
  } catch {
    return [] // gone since, or another daemon's and not for these eyes
  }
}
