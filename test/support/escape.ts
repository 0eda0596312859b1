// How the escape tests try: through a real launch by root (which drops) and by an ordinary user, bare, and with one control removed.
import { execFile } from 'node:child_process'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BubblewrapArgument } from '../../src/sandbox/bubblewrap/argv.ts'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'
import { askUser } from './as-user.ts'
import { type Difference, outputOf } from './launch.ts'
import { mountOf, planOf, run } from './plan.ts'
import { buildProbe } from './probe.ts'
import { isRoot, ordinaryUid } from './user.ts'

const fixtures = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** Who the daemon is. An ordinary user can't become root, so there it is one case. */
export const daemons: readonly ('root' | 'user')[] = isRoot ? ['root', 'user'] : ['user']

/** Launches the fixture through every step, with a daemon of that user, and returns what it wrote. */
export const confined = async (
  daemon: 'root' | 'user',
  fixture: string,
  args: readonly string[],
  more: Difference = {},
): Promise<string> =>
  isRoot && daemon === 'user'
    ? ((await askUser('fixture', [fixture, args, more])) as string)
    : outputOf(fixture, args, more)

/** Runs the fixture with nothing around it: what it finds open here is what the sandbox must close. */
export const bare = async (fixture: string, args: readonly string[], env = process.env): Promise<string> =>
  (await promisify(execFile)(process.execPath, [`${fixtures}/${fixture}`, ...args], { env })).stdout

/** Runs the fixture in a sandbox from which one control was removed. */
export const broken = async (
  fixture: string,
  args: readonly string[],
  remove: (plan: BubblewrapPlan) => Partial<BubblewrapPlan>,
  mounts: readonly { readonly source: string; readonly target: string }[] = [],
): Promise<string> => {
  const plan = await planOf(['/opt/node', `/app/${fixture}`, ...args], {
    spec: {
      mounts: [
        mountOf(process.execPath, '/opt/node'),
        mountOf(fixtures, '/app'),
        ...mounts.map(({ source, target }) => mountOf(source, target)),
      ],
    },
  })
  const { stdout, stderr, exit } = await run({ ...plan, ...remove(plan) })
  if (exit.code !== 0) throw new Error(`the fixture ended with ${JSON.stringify(exit)}: ${stderr}`)
  return stdout
}

/** One instruction: allow. */
const allowEverything = new Uint8Array([0x06, 0, 0, 0, 0x00, 0x00, 0xff, 0x7f])

/** Removes an option of bubblewrap that takes no value. */
export const withoutOption =
  (option: string) =>
  ({ arguments: all }: BubblewrapPlan): Partial<BubblewrapPlan> => ({
    arguments: all.filter((argument) => argument !== option),
  })

/** Lets every system call through. */
export const withoutFilter = ({ arguments: all }: BubblewrapPlan): Partial<BubblewrapPlan> => {
  const place = all.indexOf('--seccomp') + 1
  return {
    arguments: all.map((argument, index): BubblewrapArgument =>
      index === place ? { data: allowEverything } : argument,
    ),
  }
}

/** Leaves the kernel's counters of the sandbox's user namespace as they are. */
export const withoutCounters = ({ innerLimits }: BubblewrapPlan): Partial<BubblewrapPlan> => ({
  innerLimits: innerLimits.filter(({ type }) => type !== 'counter'),
})

/** What each attempt of the C probe met: `open`, an errno name, or `killed`. */
export type Attempts = Readonly<Record<string, string>>

const probeFile = (): string => buildProbe('escape')
const probes = (): { source: string; target: string } => ({ source: dirname(probeFile()), target: '/probes' })
const parse = (output: string): Attempts =>
  Object.fromEntries(
    output
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  )

/** The C probe's attempts of one kind, in a full launch. */
export const attempts = async (daemon: 'root' | 'user', kind: string): Promise<Attempts> => {
  const grant = { ...probes(), access: 'read', reason: 'the probe' }
  return parse(
    await confined(daemon, 'probe-exec.mjs', [`/probes/${basename(probeFile())}`, kind], { mounts: [grant] }),
  )
}

/** The same attempts, where one control is missing. */
export const brokenAttempts = async (
  kind: string,
  remove: (plan: BubblewrapPlan) => Partial<BubblewrapPlan>,
): Promise<Attempts> =>
  parse(await broken('probe-exec.mjs', [`/probes/${basename(probeFile())}`, kind], remove, [probes()]))

/** The same attempts by an ordinary user outside of any sandbox. Never by root: they would succeed. */
export const bareAttempts = async (kind: string): Promise<Attempts> => {
  const drop = isRoot ? ['setpriv', `--reuid=${ordinaryUid}`, `--regid=${ordinaryUid}`, '--clear-groups'] : []
  const [command, ...args] = [...drop, probeFile(), kind]
  return parse((await promisify(execFile)(command ?? probeFile(), args)).stdout)
}

/** Probes of calls by the numbers of other tables that do not apply, by what this machine's kernel answers outside of any sandbox. */
export const withoutForeignCalls = async (): Promise<readonly string[]> => {
  const bare = await bareAttempts('syscalls.foreign')
  if (bare['syscalls.foreign-architecture'] === 'open') return []
  return [...(bare['syscalls.foreign-numbers'] === 'open' ? [] : ['syscalls.x32']), 'syscalls.i386']
}

/** Path of the built C probe, for tests that run it in their own way. */
export const escapeProbe = probeFile

/** Which of the attempts were not stopped. */
export const openOf = (found: Attempts): string[] =>
  Object.entries(found).flatMap(([id, verdict]) => (verdict === 'open' ? [id] : []))
