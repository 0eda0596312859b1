// The daemon's second: a process that holds the locks of its directories and cleans up when the daemon is killed.
//
//   daemon, which opened what is locked     sallyport-init guard passed RUNTIME_DIR [STATE_DIR]
//     |<-- "held" | "busy PID DIR" -------------|   DIR is where the holder answers
//     |         | "busy-state PID DIR"          |
//     |         | "failed ERRNO" ---------------|
//     |--- "cgroup P" "unlink P" "rmdir P" "doors P" ---->|   what to remove after a death
//     |--- "ends PID" ------------------------->|   it has nothing left to do: overdue after five seconds, it is killed
//     |--- "done" ----------------------------->|   a proper end: nothing to remove
//     |<-- "free" ------------------------------|   the locks are; only after "ends", where the guard stays until the daemon is gone
//     |--- (end of stream without "done") ----->|   a death: waits, kills, removes, then lets the lock go
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { getSystemErrorName } from 'node:util'
import { refusalOf } from '../config/named-file.ts'
import { enough, SallyportError } from '../errors.ts'
import { within } from '../lib/deadline.ts'
import type { Logger } from '../lib/logger.ts'

/** What the guard removes when the daemon is killed. */
export type Leaving = `${'cgroup' | 'unlink' | 'rmdir' | 'doors'} /${string}`

/** What a guard is made of. */
export interface GuardOptions {
  readonly initPath: string
  readonly runtimeDir: string
  /** Whose journal no other daemon may write meanwhile; null where nothing in it is shared */
  readonly stateDir: string | null
  readonly log: Logger
  /** Whether this process does no more than exit once the lock is let go: where that hangs, the guard kills it */
  readonly exitsAfter: boolean
  /** Called when the lock is lost for good; the daemon must go down */
  readonly onLost: (error: SallyportError) => void
  /** Tells whether a daemon answers on a runtime directory */
  readonly isAnswered: (runtimeDir: string) => Promise<boolean>
}

const answerMs = 5000
// A guard whose daemon was killed keeps the lock for up to three seconds, until nothing of that daemon is left.
const predecessorMs = 8000
const doneMs = 2000
// How long a daemon goes on without a guard: machines that are short of descriptors or processes recover, too.
const replaceMs = 8000

/** The lock, held. Disposing lets it go. */
export class Guard implements AsyncDisposable {
  readonly runtimeDir: string
  readonly #options: GuardOptions
  readonly #leavings: Leaving[] = []
  readonly #locks: Locks
  #child: ChildProcess
  #isFree: Promise<void>
  #isDone = false
  #isClean = true

  private constructor(options: GuardOptions, locks: Locks, { child, isFree }: Held) {
    this.runtimeDir = options.runtimeDir
    this.#options = options
    this.#locks = locks
    this.#child = child
    this.#isFree = isFree
    this.#watch()
  }

  /** Takes the locks of prepared directories. Throws ERR_DAEMON_RUNNING, naming the pid, where a daemon holds one. */
  static async hold(options: GuardOptions): Promise<Guard> {
    for (const end = performance.now() + predecessorMs; ; await delay(50)) {
      const locks = Locks.open(lockedBy(options))
      const answer = await start(options, locks).catch((error: unknown) => {
        locks[Symbol.dispose]()
        throw error
      })
      if (answer.child !== null) return new Guard(options, locks, answer)
      locks[Symbol.dispose]()
      if (performance.now() >= end || (await options.isAnswered(answer.runtimeDir)))
        throw running(options, answer)
    }
  }

  /** Has the guard remove this if the daemon is killed; say it before it is made. */
  cleanUp(leaving: Leaving): void {
    if (leaving.includes('\n')) throw new Error('a path with a line feed can not be named to the guard')
    this.#leavings.push(leaving)
    this.#child.stdin?.write(`${leaving}\n`)
  }

  // A guard that dies leaves the daemon without a lock: there is a new one at once, or the daemon ends.
  #watch(): void {
    this.#child.once('exit', (code, signal) => {
      if (this.#isDone) return
      this.#options.log.error({ code, signal }, 'guard died, starting another')
      this.#replace().catch((error: unknown) => this.#options.onLost(SallyportError.from(error)))
    })
  }

  async #replace(): Promise<void> {
    const answer = await this.#another()
    if (answer === null) return
    if (answer.child === null) throw running(this.#options, answer)
    this.#child = answer.child
    this.#isFree = answer.isFree
    this.#watch()
    for (const leaving of this.#leavings) this.#child.stdin?.write(`${leaving}\n`)
    if (this.#isDone) await this.#finish()
  }

  // What keeps one from starting may pass: a kill, descriptors that ran out. Null where none is needed any more.
  async #another(): Promise<Answer | null> {
    for (const end = performance.now() + replaceMs; !this.#isDone; await delay(50))
      try {
        return await start(this.#options, this.#locks)
      } catch (error) {
        if (performance.now() >= end) throw error
        this.#options.log.warn({ err: error }, 'guard could not be started, trying again')
      }
    return null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.letGo(true)
  }

  /** A daemon that could not take down all of its own goes without a word: the guard does it, as after a death. */
  async letGo(isClean: boolean): Promise<void> {
    if (this.#isDone) return
    this.#isDone = true
    this.#isClean = isClean
    await this.#finish()
  }

  async #finish(): Promise<void> {
    await this.#endChild()
    this.#locks[Symbol.dispose]()
  }

  async #endChild(): Promise<void> {
    const { stdin, stdio, exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) return
    if (this.#options.exitsAfter) stdin?.write(`ends ${process.pid}\n`)
    stdin?.end(this.#isClean ? 'done\n' : undefined)
    if (this.#isClean)
      await within(this.#isFree, doneMs, () => new Error('guard does not end')).catch(() =>
        this.#child.kill('SIGKILL'),
      )
    // It waits for this process, so this process can't wait for it.
    this.#child.unref()
    for (const stream of stdio) if (stream instanceof Socket) stream.unref()
  }
}

/**
 * What is locked, opened by the daemon itself: the lock is on the open file, which the guard only shares. So it is held while
 * either lives, and no other daemon comes in between the end of a guard and the next one, however long this process stands still.
 */
class Locks implements Disposable {
  readonly descriptors: readonly number[]
  #isOpen = true

  private constructor(descriptors: readonly number[]) {
    this.descriptors = descriptors
  }

  /** Throws where a directory is not there, or its lock can't be opened: ERR_RUNTIME_UNSAFE, or ERR_SHORTAGE. */
  static open(directories: readonly string[]): Locks {
    const { O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants
    const descriptors: number[] = []
    let path = ''
    try {
      for (const directory of directories) {
        path = join(directory, 'daemon.lock')
        descriptors.push(openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600))
        descriptors.push(openSync(directory, O_RDONLY | O_DIRECTORY))
      }
      return new Locks(descriptors)
    } catch (error) {
      for (const descriptor of descriptors) closeSync(descriptor)
      throw refusalOf(error, { path, ...ofLock }) ?? error
    }
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) for (const descriptor of this.descriptors) closeSync(descriptor)
    this.#isOpen = false
  }
}

/** What a lock is opened for, and what helps where it can't be: the folder was found fit before it. */
const ofLock = {
  access: 'write',
  code: 'ERR_RUNTIME_UNSAFE',
  mend: 'move what is there, mend the disk, or choose another folder with --runtime or --state',
} as const

/** Who has a lock already, and which of the two. */
interface Holder {
  readonly child: null
  readonly directory: 'runtime' | 'state'
  readonly pid: string
  /** Where that daemon answers */
  readonly runtimeDir: string
}

interface Held {
  readonly child: ChildProcess
  /** Resolves when it has the locks no more: after a proper end of the daemon’s, or at its own */
  readonly isFree: Promise<void>
}

type Answer = Held | Holder

const busy = /^busy(?<state>-state)? (?<pid>\d*) ?(?<runtimeDir>.*)$/

const lockedBy = ({ runtimeDir, stateDir }: GuardOptions): readonly string[] =>
  stateDir === null ? [runtimeDir] : [runtimeDir, stateDir]

async function start(options: GuardOptions, { descriptors }: Locks): Promise<Answer> {
  const { initPath, runtimeDir, log } = options
  const child = spawn(initPath, ['guard', 'passed', ...lockedBy(options)], {
    stdio: ['pipe', 'pipe', 'pipe', ...descriptors],
    env: {},
    cwd: '/',
  })
  const { stdin, stdout, stderr } = child
  // It has no streams then.
  if (child.pid === undefined || stdin === null || stdout === null || stderr === null)
    throw failed(runtimeDir, (await once(child, 'error'))[0])
  const complaints: string[] = []
  stdin.on('error', (error) => log.debug({ err: error }, 'guard does not listen'))
  createInterface({ input: stderr }).on('line', (line) => complaints.push(line))
  const lines = createInterface({ input: stdout })
  // Not its exit, which may be told of before what it said.
  const closed = once(child, 'close')
  const first = Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    closed.then(([code, signal]) => {
      if (signal !== null) throw cutShort(runtimeDir, `was ended by ${String(signal)}`)
      return `exit ${String(code)}`
    }),
  ])
  const late = (): Error => cutShort(runtimeDir, `said nothing for ${answerMs} ms`)
  const line = await within(first, answerMs, late).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw failed(runtimeDir, error)
  })
  const free = Promise.withResolvers<void>()
  lines.on('line', (text) => {
    if (text === 'free') free.resolve()
    else log.error({ said: text }, 'guard refused what it was told')
  })
  child.once('exit', () => free.resolve())
  if (line === 'held') return { child, isFree: free.promise }
  const found = busy.exec(line)?.groups
  if (found !== undefined)
    return {
      child: null,
      directory: found['state'] === undefined ? 'runtime' : 'state',
      pid: found['pid'] ?? '',
      runtimeDir: found['runtimeDir'] || runtimeDir,
    }
  const errno = /^failed (?<errno>[1-9]\d*)$/.exec(line)?.groups?.['errno']
  if (errno !== undefined) await closed // its words are on stderr
  const why = new Error(complaints.join('; ') || line)
  throw failed(
    runtimeDir,
    errno === undefined ? why : Object.assign(why, { code: getSystemErrorName(-Number(errno)) }),
  )
}

function running(options: GuardOptions, { directory, pid, runtimeDir }: Holder): SallyportError {
  const who = `daemon ${pid || 'of unknown pid'}`
  const message =
    directory === 'runtime'
      ? `${who} already serves ${runtimeDir}; stop it, or choose another --runtime`
      : `${who}, which serves ${runtimeDir}, already keeps its journal in ${options.stateDir}; stop it, or choose another --state`
  return new SallyportError('ERR_DAEMON_RUNNING', message, {
    runtime_dir: runtimeDir,
    state_dir: directory === 'state' ? options.stateDir : null,
    pid,
  })
}

/** A guard that somebody ended, or that got no time: it had nothing to say against the folders. */
const cutShort = (runtimeDir: string, how: string): SallyportError =>
  new SallyportError(
    'ERR_SHORTAGE',
    `the guard of ${runtimeDir} ${how} as it started, as where memory or time runs out; ${enough}`,
  )

function failed(runtimeDir: string, cause: unknown): SallyportError {
  if (cause instanceof SallyportError) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return SallyportError.from(new Error(`the guard of ${runtimeDir} could not be started: ${why}`, { cause }))
}
