// How a process ended, in words and as a status, and how long its last output may take.
import { constants } from 'node:os'
import type { Duplex, Writable } from 'node:stream'
import type { SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'
import type { SessionEnd } from '../ports.ts'
import { soon } from '../../lib/deadline.ts'

/** How long the last output of a process may take to be read, ms */
const lastOutputMs = 5000

/** The same where it is read by nobody but us, ms */
const ownReadMs = 1000

/** One line on how a process ended. */
export function describeExit(exit: SandboxExit): string {
  if (exit.reason === 'oom') return 'it was killed because it went over its memory limit'
  if (exit.reason === 'sandbox-lost') return 'its sandbox was lost'
  if (exit.reason === 'engine-lost') return 'the engine that its container ran on went away, and it was ended'
  if (exit.reason === 'egress-lost') return 'the relay of its network was gone, and it was ended'
  if (exit.reason === 'exec-failed') return 'its program could not be executed'
  if (isKilled(exit)) return 'it was killed'
  if (exit.signal !== null) return `it was ended by signal ${exit.signal}`
  // Asked before the rest of its tree is gone, when nobody was told yet how it went.
  return exit.code === null ? 'it ended by itself' : `it exited with status ${exit.code}`
}

/** Why a process that runs answers nothing, where that is known; else null. */
export const whyStill = (process: SandboxProcess | null): string | null =>
  process?.isPaused() === true
    ? 'its container is paused, by somebody outside, and answers nothing until it is unpaused or stopped'
    : null

/** Why a stream of a server's ended, in words: how the server did, where that is known soon, else `what`, since it lives on. */
export async function whyClosed(process: SandboxProcess, what: string): Promise<string> {
  const exit = await soon(process.ended, 50)
  if (exit !== null) return describeExit(exit)
  const reason = process.ending()
  return reason === null ? what : describeExit({ code: null, signal: null, reason })
}

/** Whoever speaks with a process. */
interface Speaker {
  /** It can't be spoken with any more although it may live on, since it closed its input or its output: why, in words */
  readonly deaf: (why: string, closed: 'input' | 'output') => void
  /** It has ended, and what it said last has been read: how it did, in words */
  readonly ended: (how: string) => void
}

/** Tells whoever speaks with a process of its end, or that it is as good as that. */
export function followEnd(process: SandboxProcess, input: Writable, speaker: Speaker): void {
  let hasEnded = false
  const closed = (which: 'input' | 'output') => (): void =>
    void whyClosed(process, `it closed its ${which}`).then((why) => hasEnded || speaker.deaf(why, which))
  process.stdout.on('end', closed('output'))
  input.once('close', closed('input'))
  const followed = async (): Promise<void> => {
    const exit = await process.ended
    hasEnded = true
    await lastRead(process, ownReadMs)
    speaker.ended(describeExit(exit))
  }
  void followed() // never rejects
}

/** The exit status that a shell would show: 128 + n for a signal, 137 for a tree that was killed whole. */
export const statusOf = (exit: SandboxExit | null): number => {
  if (exit === null) return 1
  if (isKilled(exit)) return 128 + constants.signals.SIGKILL
  return exit.signal === null ? (exit.code ?? 1) : 128 + exit.signal
}

/** Why a session ends whose host said all that it had to */
export const hostLeft = 'the host closed its end'

/** How a session ended that was ended for that reason, with that status where it is not its server's own. */
export function sessionEnd(
  reason: string | null,
  status: number | null,
  server: { readonly exit: SandboxExit | null; readonly reason: string | null } | null,
): SessionEnd {
  const own = server === null ? 0 : statusOf(server.exit)
  const why = reason ?? server?.reason ?? null
  const exit = why === hostLeft && own !== 0 ? (server?.exit ?? null) : null
  return { status: status ?? own, reason: exit === null ? why : `${why}, and ${describeExit(exit)}` }
}

/** Killed with its sandbox, nobody was left to say how the server itself ended. */
const isKilled = ({ code, signal, reason }: SandboxExit): boolean =>
  code === null && signal === null && (reason === 'killed' || reason === 'oom')

/** Gives whoever reads the output time to do so; resolves when all of it has been read, or when that takes too long. */
export async function lastRead(
  { stdout }: Pick<SandboxProcess, 'stdout'>,
  ms: number = lastOutputMs,
): Promise<void> {
  if (!stdout.readableEnded && !stdout.destroyed)
    await soon(new Promise((done) => stdout.once('end', done).once('close', done)), ms)
}

/** Lets go of the streams once the output has been read. */
export async function release(process: SandboxProcess): Promise<void> {
  await lastRead(process)
  await process[Symbol.asyncDispose]()
}

/** Ends a host's stream behind what was written to it; one that does not read is cut off after a bounded time. */
export async function closeStream(host: Duplex): Promise<void> {
  if (host.destroyed) return
  await soon(new Promise<void>((done) => host.once('close', done).end(done)), lastOutputMs)
  host.destroy()
}
