// One script of the benchmark in a process of its own, to its end, after which nothing of it is there.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { processesWith } from '../support/leaks.ts'
import { reasonOf } from '../support/reason.ts'
import { soon } from '../../src/lib/deadline.ts'
import { tempDir } from '../support/temp-dir.ts'
import type { Figure } from './figures.ts'
import { sharedPeers } from './peers.ts'
import { until } from './until.ts'

export interface ScriptRun {
  /** What it found, also where it failed afterwards */
  readonly figures: readonly Figure[]
  /** How it failed, such as `status 1`; null where it did not */
  readonly failure: string | null
  /** Whether a signal to this process has ended it */
  readonly isBrokenOff: boolean
}

interface RunOptions {
  readonly limitMs?: number
  /** What is given to what it has left, ms */
  readonly restMs?: number
  /** A folder where peers are, once they were installed; null for one of the script's own */
  readonly peers?: string | null
}

/** What a script says to who has started it. */
type Message = { readonly figures: readonly Figure[] } | { readonly failure: string }

/** How much of what a script says on stderr is kept for its reason, characters */
const toldBytes = 8192
/** How long the last of it may take to be read, ms */
const lastWordsMs = 200
/** The longest that a script may take, ms: some take minutes, and one that waits for what never comes would keep all others waiting */
const scriptMs = 30 * 60_000
/** What it is given to undo what it has started, ms */
const undoMs = 60_000
/** What is usually given to what it has left: the guard of a daemon that was killed takes three seconds to end a sandbox, ms */
const leftMs = 10_000

/**
 * Runs the script at a path; what it says on stderr is shown, and a signal to this process ends it first. After `limitMs` it
 * is told to end, and its whole group is killed where it does not.
 *
 * Its temporary files are in a folder of its own, which goes away with what it left running, however it ended.
 */
export async function runScript(
  path: string,
  args: readonly string[],
  { limitMs = scriptMs, restMs = leftMs, peers = null }: RunOptions = {},
): Promise<ScriptRun> {
  await using folder = await tempDir()
  // In a group of its own: what a terminal says to all of us is said to it once, and it undoes what it has started.
  const child = fork(path, [...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    detached: true,
    env: { ...process.env, TMPDIR: folder.path, ...(peers !== null && { [sharedPeers]: peers }) },
  })
  let figures: readonly Figure[] = []
  let said: string | null = null
  let told = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk)
    told = (told + chunk.toString()).slice(-toldBytes)
  })
  child.on('message', (message: Message) => {
    if ('figures' in message) figures = message.figures
    else said = message.failure
  })
  let isBrokenOff = false
  const onSignal = (): void => {
    isBrokenOff = true
    child.kill('SIGTERM')
  }
  let isLate = false
  let limit = setTimeout(() => {
    isLate = true
    child.kill('SIGTERM')
    limit = setTimeout(() => killGroup(child), undoMs)
  }, limitMs)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  // Its channel is read to the end by then, which `exit` does not wait for; what it has left may hold its stderr.
  const [[status, signal]] = (await Promise.all([once(child, 'exit'), once(child, 'disconnect')])) as [
    [number | null, string | null],
    unknown,
  ]
  await soon(new Promise((done) => child.stderr?.once('close', done)), lastWordsMs)
  child.stderr?.destroy()
  clearTimeout(limit)
  const ended = isLate
    ? `no end within ${limitMs / 1000} s`
    : status === 0
      ? null
      : (said ?? signal ?? `status ${status}${lastWords(told)}`)
  const left = await endWhatIsLeft(child, peers === null ? [folder.path] : [folder.path, peers], restMs)
  for (const name of signals) process.off(name, onSignal)
  return { figures, failure: ended ?? left, isBrokenOff }
}

/** What had to be killed after `restMs`; one that was killed itself leaves daemons, whose guards end their sandboxes. */
async function endWhatIsLeft(
  child: ChildProcess,
  folders: readonly string[],
  restMs: number,
): Promise<string | null> {
  killGroup(child)
  const left = (): readonly number[] => [...new Set(folders.flatMap((folder) => processesWith(`${folder}/`)))]
  const hasEnded = (): Promise<void> => until('what it left has ended', () => left().length === 0, restMs)
  const isRest = await hasEnded().then(
    () => true,
    () => false,
  )
  if (isRest) return null
  const staying = left()
  const names = staying.map(nameOf)
  for (const pid of staying) kill(pid)
  try {
    await hasEnded()
  } catch (error) {
    return reasonOf(error)
  }
  return names.length === 0 ? null : `it left what had to be killed: ${names.join(', ')}`
}

/** As the kernel has it. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return 'one that has just ended'
  }
}

/** What a script that threw said of that, else the last that it said. */
function lastWords(told: string): string {
  const lines = told.split('\n').filter((line) => line.trim() !== '')
  const why = lines.findLast((line) => /^\w*Error\b.*: /.test(line)) ?? lines.at(-1)
  return why === undefined ? '' : `: ${why.trim().slice(0, 200)}`
}

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) kill(-pid)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has just ended
  }
}
