// One script of the benchmark in a process of its own, to its end.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Figure } from './figures.ts'

export interface ScriptRun {
  /** What it found, also where it failed afterwards */
  readonly figures: readonly Figure[]
  /** How it failed, such as `status 1`; null where it did not */
  readonly failure: string | null
  /** Whether a signal to this process has ended it */
  readonly isBrokenOff: boolean
}

/** The longest that a script may take, ms: some take minutes, and one that waits for what never comes would keep all others waiting */
const scriptMs = 30 * 60_000
/** What it is given to undo what it has started, ms */
const undoMs = 60_000

/**
 * Runs the script at a path; what it says on stderr is shown, and a signal to this process ends it first. After `limitMs` it
 * is told to end, and its whole group is killed where it does not.
 */
export async function runScript(
  path: string,
  args: readonly string[],
  limitMs = scriptMs,
): Promise<ScriptRun> {
  // In a group of its own: what a terminal says to all of us is said to it once, and it undoes what it has started.
  const child = fork(path, [...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], detached: true })
  let figures: readonly Figure[] = []
  child.on('message', (message) => (figures = (message as { figures: readonly Figure[] }).figures))
  let isBrokenOff = false
  const onSignal = (): void => {
    isBrokenOff = true
    child.kill('SIGTERM')
  }
  let isLate = false
  let limit = setTimeout(() => {
    isLate = true
    child.kill('SIGTERM')
    limit = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'), undoMs)
  }, limitMs)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  // Its channel is read to the end by then, which `exit` does not wait for
  const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(limit)
  for (const name of signals) process.off(name, onSignal)
  if (isLate) return { figures, failure: `no end within ${limitMs / 1000} s`, isBrokenOff }
  return { figures, failure: status === 0 ? null : (signal ?? `status ${status}`), isBrokenOff }
}
