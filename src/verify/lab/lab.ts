// Where attempts are made: in the sandbox of a launch, in the same with a control taken out, and outside of any.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import type { GateSecrets } from '../../sandbox/gate.ts'
import type { EnforcedLimits, SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'
import type { LaunchHost } from '../../sandbox/host.ts'
import { type LaunchPlan, noSupply, openLaunch, planLaunch } from '../../sandbox/launch.ts'
import type { OpenDoor } from '../../sandbox/network.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { EgressGrant } from '../../schema/egress.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../schema/settings.ts'
import type { Answer, Attempt, Watched } from '../attempt.ts'
import type { Canaries } from './canaries.ts'
import { alsoMounted } from './container-removal.ts'
import type { KernelInside } from '../probe.ts'
import { showing } from './removal.ts'
import { standInFor } from './stand-in.ts'
import type { LabDoors } from './way-out.ts'

/** Takes something out of a plan. */
export type Alter = (plan: LaunchPlan) => LaunchPlan

/** What a launch for attempts is made of. */
export interface Lab {
  readonly host: LaunchHost
  readonly settings: Settings
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  /** Whether the probes stand in for a server that is another program */
  readonly isStandIn: boolean
  /** The way out of a profile that has one */
  readonly openDoor: OpenDoor | null
  /** What that way out has beside what was granted; every name behind it leads to this machine */
  readonly grant: EgressGrant
  /** What a launch without one of the proxy's judgements has in its place, and one with budgets that are soon used up */
  readonly doors: LabDoors
  /** A pattern of names that no launch may have */
  readonly broad: { readonly pattern: string; readonly doorFor: (pattern: string) => OpenDoor }
  /** The probes' program where it was installed: what may be a server's command */
  readonly probes: string
  /** The probes' program where any user may execute it, and a folder that any user may read */
  readonly program: string
  readonly folder: string
  /** What a launch may be asked to mount: a folder of Sallyport's own, somebody's project, people's homes */
  readonly trees: Pick<Canaries, 'own' | 'workspace' | 'people' | 'socket'>
  /** A file with a capability for whoever executes it, or null where there is none */
  readonly capable: string | null
  /** Whether what a server writes is read before it is asked for, however much it is */
  readonly readsAtOnce: boolean
  /** Whether a server that goes on after it was asked to end is killed */
  readonly kills: boolean
  /** Whether a launch that is to disagree with its profile on a way out does */
  readonly disagrees: boolean
  /** Secrets that the launch is given, as a call's own process is */
  readonly secrets: GateSecrets
  /** The daemon's variables, as a child without a sandbox inherits them */
  readonly variables: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

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

const asked = (attempts: readonly Attempt[]): readonly Attempt[] =>
  attempts.filter(({ watch }) => watch === undefined)

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

/** What a launch would confine, without one. Throws what would refuse the launch. */
export const planOf = async (
  lab: Lab,
): Promise<{
  readonly spec: SandboxSpec
  readonly enforcedBy: EnforcedLimits
  readonly kernel: KernelInside
}> => {
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
  let early = lab.readsAtOnce ? textOf(server.stderr) : null
  const answers = await answersOf(server.stdout, attempts, {
    pid: server.initPid,
    terminate: () => server.terminate(),
    kill: () => (lab.kills ? server.kill() : server.terminate()),
    abandon: () => server.abandon(),
    endRelay: async (by) => {
      const [relay] = await childrenOf(server.initPid)
      if (relay !== undefined) process.kill(relay, by)
    },
    ended: server.ended,
    launched,
    stderrEnds: (ms) => isOverWithin((early ??= textOf(server.stderr)), ms),
    isOver: () => {
      server.stdin.end()
      if (!lab.kills) server.kill()
    },
  })
  const stderr = await (early ?? textOf(server.stderr))
  const exit = await server.ended
  lab.signal.removeEventListener('abort', kill)
  lab.signal.throwIfAborted()
  return { answers, exit, stderr }
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
    const said = textOf(child.stderr)
    child.stdin?.on('error', () => undefined)
    const [answers, stderr] = await Promise.all([
      answersOf(child.stdout, attempts, {
        pid: child.pid ?? 0,
        terminate: () => child.kill('SIGTERM'),
        kill: () => child.kill('SIGKILL'),
        abandon: () => child.stdin?.end(),
        endRelay: () => Promise.resolve(),
        ended,
        launched: null,
        stderrEnds: (ms) => isOverWithin(said, ms),
        isOver: () => child.stdin?.end(),
      }),
      said,
      ended,
    ])
    return { answers, exit: null, stderr }
  } finally {
    await leftOpen.close()
  }
}

/**
 * Reads the answers to what was asked; once all are there, looks at what is to be seen from outside. `isOver` is called then.
 * Fewer answers than attempts are those up to the first that has none.
 */
const answersOf = async (
  stdout: Readable | null,
  attempts: readonly Attempt[],
  program: Watched & { readonly isOver: () => void },
): Promise<readonly Answer[]> => {
  const count = asked(attempts).length
  const watched = new Map<Attempt, Answer>()
  const lookAround = async (): Promise<void> => {
    for (const attempt of attempts)
      if (attempt.watch !== undefined) watched.set(attempt, await attempt.watch(program))
    program.isOver()
  }
  if (count === 0) await lookAround()
  let [output, lines] = ['', 0]
  for await (const chunk of stdout ?? []) {
    const text = (chunk as Buffer).toString('latin1')
    const before = lines
    output += text
    lines += text.split('\n').length - 1
    if (before < count && lines >= count) await lookAround()
  }
  const told = answersIn(output, count)
  let next = 0
  const answers: Answer[] = []
  for (const attempt of attempts) {
    const answer = attempt.watch === undefined ? told[next++] : watched.get(attempt)
    if (answer === undefined) break
    answers.push(answer)
  }
  return answers
}

/** PID 1 starts the relay before anything else. */
const childrenOf = async (pid: number): Promise<readonly number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').map(Number)

const isOverWithin = (work: Promise<unknown>, ms: number): Promise<boolean> =>
  within(work, ms, () => new Error('it goes on')).then(
    () => true,
    () => false,
  )

const textOf = async (stream: Readable | null): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream ?? []) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/**
 * Reads what the program wrote, a line for each attempt, up to the first that is no answer: what stands behind it was
 * answered by nobody. More answers than attempts are nobody's either.
 */
export const answersIn = (output: string, attempts: number): readonly Answer[] => {
  const answers: Answer[] = []
  for (const line of output.split('\n').slice(0, -1)) {
    const answer = answerIn(line)
    if (answer === null) break
    answers.push(answer)
  }
  return answers.length > attempts ? [] : answers
}

const answerIn = (line: string): Answer | null => {
  const { outcome, text, ms } = { ...(parsed(line) as object) } as Readonly<Record<string, unknown>>
  return typeof outcome === 'string' && typeof text === 'string' && typeof ms === 'number'
    ? { outcome, text, ms }
    : null
}

const parsed = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
