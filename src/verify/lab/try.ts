// Attempts are made: in the sandbox of a launch, in the same with a control taken out, and outside of any.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { newInstanceId } from '../../lib/ids.ts'
import type { EnforcedLimits, SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'
import { type LaunchPlan, noSupply, openLaunch, planLaunch } from '../../sandbox/launch.ts'
import { childrenOf } from '../../sandbox/proof.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Answer, Attempt, Watched } from '../attempt.ts'
import { answersOf, asked } from './answers.ts'
import { alsoMounted } from './container-removal.ts'
import type { KernelInside, Lab } from './lab.ts'
import { showing } from './removal.ts'
import { standInFor } from './stand-in.ts'

/** Takes something out of a plan. */
export type Alter = (plan: LaunchPlan) => LaunchPlan

/** Answers in the order of the attempts; fewer where the program ended before. */
export interface Tried {
  readonly answers: readonly Answer[]
  readonly exit: SandboxExit | null
  readonly stderr: string
}

/** Where the sandbox has the list of attempts; the program reads it there. */
export const listPath = '/sallyport/attempts'

/** Whom a daemon of root starts outside: nobody, since to root everything is open. */
const nobody = 65_534
const launchMs = 60_000

/** Where the sandbox has the file with a capability. */
export const capableTarget = '/sallyport/capable'

const listOf = (attempts: readonly Attempt[]): string =>
  asked(attempts)
    .map(({ asks }) => `${asks.join('\t')}\n`)
    .join('')

/** Plans one launch for these attempts and hands it to `use`, which must pass it on or dispose of its limits. */
const plan = async (lab: Lab, attempts: readonly Attempt[], signal: AbortSignal): Promise<LaunchPlan> => {
  const { server, profile, settings, openDoor, host, isStandIn, secrets } = lab
  const files = [{ target: listPath, content: listOf(attempts), mode: 0o444 }]
  const given = { secrets: () => secrets, hasSecretFiles: secrets.files.length > 0 }
  const supply = { ...noSupply, openDoor, files, ...given }
  const instance = newInstanceId()
  const planned = await planLaunch({ server, profile, settings, instance, supply }, host, { signal })
  return isStandIn ? standInFor(planned, [listPath], host) : planned
}

/** What a launch comes to. */
export interface Confined {
  readonly spec: SandboxSpec
  readonly enforcedBy: EnforcedLimits
  readonly kernel: KernelInside
}

/** What a launch would confine, without one. Throws what would refuse the launch. */
export const planOf = async (lab: Lab): Promise<Confined> => {
  const planned = await plan(lab, [], lab.signal)
  if (planned.driver === 'docker') return { ...planned, kernel: planned.isGvisor ? 'gvisor' : 'host' }
  await planned.outerLimits[Symbol.asyncDispose]()
  return { ...planned, kernel: 'host' }
}

/** Starts a sandbox that makes the attempts and stays until its stdin ends. The caller disposes of it. */
export const startInside = async (
  lab: Lab,
  attempts: readonly Attempt[],
  alter?: Alter,
): Promise<SandboxProcess> => {
  const signal = AbortSignal.any([lab.signal, AbortSignal.timeout(launchMs)])
  const planned = withExhibit(lab, await plan(lab, attempts, signal))
  const altered = alter === undefined ? planned : alter(planned)
  if (planned.driver === 'bubblewrap' && altered.driver === 'bubblewrap')
    if (altered.outerLimits !== planned.outerLimits) await planned.outerLimits[Symbol.asyncDispose]()
  return openLaunch(altered, lab.host, { signal })
}

// A file to execute, read-only as every other: the one thing that no launch of a server has.
const withExhibit = ({ capable }: Lab, planned: LaunchPlan): LaunchPlan => {
  if (capable === null) return planned
  if (planned.driver === 'docker') return alsoMounted(planned, capable, capableTarget)
  return { ...planned, ...showing('capable', [[capable, capableTarget]])(planned) }
}

/** Makes the attempts in one sandbox, and returns when nothing of it is left. */
export const tryInside = async (lab: Lab, attempts: readonly Attempt[], alter?: Alter): Promise<Tried> => {
  let launched: Watched['launched'] = null
  await using server = await startInside(lab, attempts, (plan) => {
    const altered = alter?.(plan) ?? plan
    launched = { lab, plan: altered }
    return altered
  })
  const kill = (): void => server.kill()
  lab.signal.addEventListener('abort', kill, { once: true })
  // Otherwise not before the end: what nobody reads, a server cannot go on writing.
  const stderr = heardOn(server.stderr)
  if (lab.readsAtOnce) void stderr.end()
  const { answers, hasBegun } = await answersOf(server.stdout, attempts, {
    pid: server.initPid,
    terminate: () => server.terminate(),
    kill: () => (lab.kills ? server.kill() : server.terminate()),
    abandon: () => server.abandon(),
    async endRelay(by) {
      // PID 1 starts the relay before anything else.
      const [relay] = childrenOf(server.initPid)
      if (relay !== undefined) process.kill(relay.pid, by)
    },
    ended: server.ended,
    launched,
    patienceMs: lab.patienceMs,
    stderrEnd: stderr.end,
    says: stderr.says,
    isOver: () => {
      server.stdin.end()
      if (!lab.kills) server.kill()
    },
  })
  const said = await stderr.end()
  const exit = await server.ended
  lab.signal.removeEventListener('abort', kill)
  lab.signal.throwIfAborted()
  return { answers: answers.length === 0 ? endedUntried(exit, hasBegun) : answers, exit, stderr: said }
}

/**
 * Of a program that came to its own end before it answered anything, nothing stopped it, as what ends a whole sandbox would; nor has
 * what ended a sandbox stopped an attempt that had not begun.
 */
const endedUntried = ({ code, signal, reason }: SandboxExit, hasBegun: boolean): readonly Answer[] => {
  const unknown = (text: string): readonly Answer[] => [{ outcome: 'unknown', text, ms: 0 }]
  const how = signal === null ? `status ${code}` : `signal ${signal}`
  if (reason === 'exited' || reason === 'exec-failed')
    return unknown(`the program ended by itself, with ${how}`)
  return hasBegun ? [] : unknown(`the sandbox ended before anything was tried in it: ${reason}`)
}

/** Makes them outside, as an ordinary user, with a folder left open and the daemon's variables. */
export const tryOutside = async (lab: Lab, attempts: readonly Attempt[]): Promise<Tried> => {
  const list = join(lab.folder, `outside-${newInstanceId()}`)
  await writeFile(list, listOf(attempts), { mode: 0o644 })
  const drop = process.geteuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  const leftOpen = await open(lab.folder)
  try {
    const child = spawn(lab.program, [list], {
      ...drop,
      cwd: '/',
      env: { ...lab.variables, PATH: '/usr/bin:/bin' },
      stdio: ['pipe', 'pipe', 'pipe', leftOpen.fd],
      signal: lab.signal,
    })
    const ended = once(child, 'close')
    const said = heardOn(child.stderr)
    child.stdin?.on('error', () => undefined)
    const [{ answers }, stderr] = await Promise.all([
      answersOf(child.stdout, attempts, {
        pid: child.pid ?? 0,
        terminate: () => child.kill('SIGTERM'),
        kill: () => child.kill('SIGKILL'),
        abandon: () => child.stdin?.end(),
        endRelay: () => Promise.resolve(),
        ended,
        launched: null,
        patienceMs: lab.patienceMs,
        stderrEnd: said.end,
        says: said.says,
        isOver: () => child.stdin?.end(),
      }),
      said.end(),
      ended,
    ])
    return { answers, exit: null, stderr }
  } finally {
    await leftOpen.close()
  }
}

/** Reads what is written there from when it is first asked for, to its end. */
const heardOn = (stream: Readable | null) => {
  const words = new Map<string, () => void>()
  let heard = ''
  const listen = async (): Promise<string> => {
    for await (const chunk of stream ?? []) {
      heard += (chunk as Buffer).toString('latin1')
      for (const [word, resolve] of words) if (heard.includes(word)) resolve()
    }
    return heard
  }
  let whole: Promise<string> | null = null
  const end = (): Promise<string> => {
    whole ??= listen()
    whole.catch(() => undefined) // whoever asks for the end hears of it
    return whole
  }
  return {
    end,
    says: (word: string): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      words.set(word, resolve)
      if (heard.includes(word)) resolve()
      void end()
      return promise
    },
  }
}
