// The processes that a fault can pick from, and what can be done to one from outside.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { type ChildProcess, descendantsOf } from '../support/leaks.ts'
import type { Chance } from './chance.ts'
import type { Stage } from './stage.ts'

/** Processes of the daemon's sandboxes, from the launcher to what servers started, and its guard. */
export function partsOf({ pid }: Stage): readonly ChildProcess[] {
  return pid === null ? [] : descendantsOf(pid)
}

/** What stands beside all sandboxes: it is never about to become one, as a launcher is. */
export const isBeside = (pid: number): boolean => ['guard', 'peer'].includes(roleOf(pid))

/** The process that reads the configuration, once there is one; null where none comes. */
export const readerOf = (stage: Stage): Promise<number | null> =>
  eventually(() => partsOf(stage).find(({ pid }) => argvOf(pid).includes('load-child'))?.pid, 5000).catch(
    () => null,
  )

/** The guards below a daemon, or below whoever adopted them. */
export const guardsBelow = (pid: number): readonly number[] =>
  descendantsOf(pid).flatMap((part) => (roleOf(part.pid) === 'guard' ? [part.pid] : []))

/** What a process of ours is for, as its first argument says; empty for one that has just ended. */
const roleOf = (pid: number): string => argvOf(pid).split('\0')[1] ?? ''

function argvOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** What every sandbox of a run has, by what it is called. */
export const essential: Readonly<Record<string, (part: ChildProcess) => boolean>> = {
  'the sandbox tool': ({ name }) => name === 'bwrap',
  'PID 1 of a sandbox': ({ pid }) => roleOf(pid) === 'init',
  'a server': ({ pid }) => roleOf(pid).endsWith('.mjs'),
}

/** One of them, of each kind as often. */
export function onePart(chance: Chance, parts: readonly ChildProcess[]): ChildProcess | null {
  if (parts.length === 0) return null
  const kind = chance.pick([...new Set(parts.map(({ name }) => name))])
  return chance.pick(parts.filter(({ name }) => name === kind))
}

/** Stops it for so long; returns what it did, for people. */
export async function stopped(pid: number, ms: number): Promise<string> {
  signal(pid, 'SIGSTOP')
  await delay(ms)
  signal(pid, 'SIGCONT')
  return `${ms} ms`
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // it ended meanwhile, or is another user's by now
  }
}

/** Holds a process to a limit; returns what gives it its former one back. A process that has ended is left in peace. */
export function limit(pid: number, resource: 'nofile' | 'fsize' | 'data', soft: number): () => void {
  const prlimit = (...args: readonly string[]): string => {
    try {
      return execFileSync('prlimit', ['--pid', `${pid}`, ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim()
    } catch {
      return ''
    }
  }
  const former = prlimit(`--${resource}`, '--output', 'SOFT', '--noheadings', '--raw')
  prlimit(`--${resource}=${soft}:`)
  return () => void (former !== '' && prlimit(`--${resource}=${former}:`))
}

/** Where each thread of a process stands in the kernel. */
export const threadsOf = (pid: number): string =>
  readdirSync(`/proc/${pid}/task`)
    .map((tid) => {
      const [name, state] = ['comm', 'wchan'].map((file) =>
        readFileSync(`/proc/${pid}/task/${tid}/${file}`, 'utf8').trim(),
      )
      return `${name} in ${state}`
    })
    .join(', ')
