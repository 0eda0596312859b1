// Where attempts are made: in the sandbox of a launch, in the same with a control taken out, and outside of any.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { SallyportError } from '../errors.ts'
import { newInstanceId } from '../lib/ids.ts'
import type { BubblewrapPlan } from '../sandbox/bubblewrap/driver.ts'
import type { EnforcedLimits, SandboxExit, SandboxProcess } from '../sandbox/driver.ts'
import type { LaunchHost } from '../sandbox/host.ts'
import { noSupply, openLaunch, planLaunch } from '../sandbox/launch.ts'
import type { OpenDoor } from '../sandbox/network.ts'
import type { SandboxSpec } from '../sandbox/spec.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../schema/settings.ts'
import type { Answer, Attempt } from './attempt.ts'

/** Takes something out of a plan. */
export type Alter = (plan: BubblewrapPlan) => Partial<BubblewrapPlan>

/** What a launch for attempts is made of. */
export interface Lab {
  readonly host: LaunchHost
  readonly settings: Settings
  readonly server: ServerSettings
  readonly profile: ProfileSettings
  /** The way out of a profile that has one */
  readonly openDoor: OpenDoor | null
  /** The probes' program where any user may execute it, and a folder that any user may read */
  readonly program: string
  readonly folder: string
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

const listOf = (attempts: readonly Attempt[]): string =>
  attempts.map(({ asks }) => `${asks.join('\t')}\n`).join('')

/** Plans one launch for these attempts and hands it to `use`, which must pass it on or dispose of its limits. */
const plan = async (lab: Lab, attempts: readonly Attempt[], signal: AbortSignal): Promise<BubblewrapPlan> => {
  const { server, profile, settings, openDoor, host } = lab
  const files = [{ target: listPath, content: listOf(attempts), mode: 0o444 }]
  const supply = { ...noSupply, openDoor, files }
  const planned = await planLaunch({ server, profile, settings, instance: newInstanceId(), supply }, host, {
    signal,
  })
  if (planned.driver === 'bubblewrap') return planned
  throw new SallyportError('ERR_INTERNAL', `probes were planned for ${planned.driver}`)
}

/** What a launch would confine, without one. */
export const specOf = async (
  lab: Lab,
): Promise<{ readonly spec: SandboxSpec; readonly enforcedBy: EnforcedLimits }> => {
  const { spec, enforcedBy, outerLimits } = await plan(lab, [], lab.signal)
  await outerLimits[Symbol.asyncDispose]()
  return { spec, enforcedBy }
}

/** Starts a sandbox that makes the attempts and stays until its stdin ends. The caller disposes of it. */
export const startInside = async (
  lab: Lab,
  attempts: readonly Attempt[],
  alter?: Alter,
): Promise<SandboxProcess> => {
  const signal = AbortSignal.any([lab.signal, AbortSignal.timeout(launchMs)])
  const planned = await plan(lab, attempts, signal)
  const altered = alter === undefined ? planned : { ...planned, ...alter(planned) }
  if (altered.outerLimits !== planned.outerLimits) await planned.outerLimits[Symbol.asyncDispose]()
  return openLaunch(altered, lab.host, { signal })
}

/** Makes the attempts in one sandbox, and returns when nothing of it is left. */
export const tryInside = async (lab: Lab, attempts: readonly Attempt[], alter?: Alter): Promise<Tried> => {
  await using server = await startInside(lab, attempts, alter)
  server.stdin.end()
  const [stdout, stderr] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
  const exit = await server.ended
  return { answers: answersIn(stdout), exit, stderr }
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
      stdio: ['ignore', 'pipe', 'pipe', leftOpen.fd],
      signal: lab.signal,
    })
    const ended = once(child, 'close')
    const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr), ended])
    return { answers: answersIn(stdout), exit: null, stderr }
  } finally {
    await leftOpen.close()
  }
}

const textOf = async (stream: Readable | null): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream ?? []) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** Reads what the program wrote; it is ours, and a sandbox away, so each line is held to its shape. */
const answersIn = (output: string): readonly Answer[] =>
  output
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Answer => {
      const value = parsed(line)
      if (
        typeof value === 'object' &&
        value !== null &&
        'outcome' in value &&
        typeof value.outcome === 'string' &&
        'text' in value &&
        typeof value.text === 'string' &&
        'ms' in value &&
        typeof value.ms === 'number'
      )
        return { outcome: value.outcome, text: value.text, ms: value.ms }
      throw new SallyportError(
        'ERR_INTERNAL',
        `sallyport-probes answered ${JSON.stringify(line.slice(0, 120))}, expected an outcome, its text and its ms; build it again`,
        { line: line.slice(0, 120) },
      )
    })

const parsed = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
