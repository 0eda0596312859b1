// The battery in the real sandboxes of real launches, by a daemon of root and of an ordinary user, with every control taken out in turn.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import type { Verdict, Verification } from '../../src/verify/result.ts'
import { asUser } from '../support/as-user.ts'
import { daemons, withoutForeignCalls } from '../support/escape.ts'
import { longestMs } from '../support/patience.ts'
import { isSound } from '../support/verification.ts'

type Found = Verification & { readonly leftAtHome: readonly string[] }

const script = fileURLToPath(new URL('../support/run-verify.ts', import.meta.url))

const verify = async (daemon: 'root' | 'user', ...args: readonly string[]): Promise<Found> => {
  const isOther = process.getuid?.() === 0 && daemon === 'user'
  const output = isOther
    ? await asUser('support/run-verify.ts', ...args)
    : (await promisify(execFile)(process.execPath, [script, ...args], { maxBuffer: 2 ** 26 })).stdout
  return JSON.parse(output) as Found
}

const notPassed = ({ probes }: Verification): string[] =>
  probes.flatMap(({ id, verdict, observed, detail }) =>
    isSound(verdict) ? [] : [`${id} ${verdict}: ${observed}; ${detail}`],
  )

/** Where the canaries were, as the evidence has them. */
const plantedIn = ({ probes }: Verification): string[] => {
  const paths = ['files.home', 'files.tmp', 'ipc.shared-files', 'network.pathname-sockets'].map((id) => {
    const [line = ''] = probes.find((probe) => probe.id === id)?.evidence ?? []
    return /(\/[^:]+):/.exec(line)?.[1] ?? `no path in ${line}`
  })
  expect(paths.filter((path) => !path.startsWith('/'))).toEqual([])
  return paths
}

/** A pass says that it was tried, and that the same was seen open where its control is not. */
const untriedPasses = ({ probes }: Verification): string[] =>
  probes.flatMap(({ id, verdict, evidence, positiveControl }) =>
    verdict === 'pass' && (evidence.length === 0 || positiveControl?.isOpen !== true) ? [id] : [],
  )

const of = ({ probes }: Verification, wanted: Verdict): string[] =>
  probes.flatMap(({ id, verdict }) => (verdict === wanted ? [id] : []))

const notOfThisKernel = await withoutForeignCalls()

/** What neither the profile nor this machine has: everything else is tried. */
const nothingOf = (profile: string, daemon: 'root' | 'user'): string[] => [
  ...(existsSync('/proc/sysrq-trigger') ? [] : ['proc.sysrq']),
  ...notOfThisKernel,
  'syscalls.one-program',
  ...(profile === 'offline' ? ['network.relay-end'] : []),
  ...(daemon === 'root' ? [] : ['files.staged']),
  ...(profile === 'offline'
    ? ['network.relay-stop', 'network.patterns', 'network.broad-patterns', 'network.budgets']
    : []),
  'capabilities.ordered',
  ...(profile === 'offline' ? ['network.secrets', 'network.told', 'network.doors-shut'] : []),
]

const limits = [
  { text: 'cannot exceed memory', observed: 'stopped: oom' },
  { text: 'cannot exceed pids', observed: 'stopped: EAGAIN' },
  { text: 'cannot exceed files', observed: 'stopped: EMFILE' },
  { text: 'cannot exceed disk', observed: 'stopped: ENOSPC' },
]

/** Controls that are others in a sandbox that has a network, or that no other has. */
const wayOut: readonly ControlId[] = [
  'net-namespace',
  'resolver',
  'relay',
  'relay-rights',
  'relay-end',
  'proxy',
  'network-mode',
  'addresses',
  'patterns',
  'budgets',
  'placeholders',
  'told',
  'doors',
]

/** Every control is taken out under each daemon once, and the way out under both. */
const selfChecks: readonly (readonly ['root' | 'user', profile: string, only: typeof wayOut | null])[] = [
  ['root', 'offline', null],
  ['root', 'allowlisted-egress', wayOut],
  // A user's sandbox without a network has nothing that this one has not; that it holds is tried below.
  ['user', 'allowlisted-egress', null],
]

test.each(selfChecks.filter(([daemon]) => daemons.includes(daemon)))(
  'under a daemon of %s %s holds, is seen open without its controls, and goes red without each',
  { timeout: longestMs },
  async (daemon, profile, only) => {
    const found = await verify(daemon, profile, only === null ? 'self-check' : `self-check:${only.join()}`)
    expect(notPassed(found)).toEqual([])
    const tried = catalogue.filter(({ control }) => only?.includes(control) ?? true)
    expect(found.probes.map(({ id }) => id)).toEqual(tried.map(({ id }) => id))
    expect(untriedPasses(found)).toEqual([])
    for (const { id, brokenArm } of found.probes.filter(({ verdict }) => verdict === 'pass'))
      expect(brokenArm?.isRed, id).toBe(true)
    // Only root can give a file capabilities; whether a machine has one that has some is another's to say.
    const absent = of(found, 'not-applicable').filter(
      (id) => daemon === 'root' || id !== 'capabilities.of-files',
    )
    const isTried = new Set(tried.map(({ id }) => id))
    expect(absent).toEqual(nothingOf(profile, daemon).filter((id) => isTried.has(id)))
    expect(found.leftAtHome).toEqual([])
    if (only !== null) return
    const isHeldHere = found.enforcedBy.cpu !== 'none'
    expect(of(found, 'not-enforced')).toEqual(isHeldHere ? [] : ['resources.cpu'])
    expect(found.verdict).toBe(isHeldHere ? 'pass' : 'not-enforced')
    expect(plantedIn(found).filter((path) => existsSync(path))).toEqual([])
  },
)

/** Without a self-check each daemon tries one profile: what stops at a limit, and what holds it, is the same under every other. */
const plainly: readonly (readonly ['root' | 'user', profile: string, how: 'plain' | 'strict'])[] = [
  ['root', 'node', 'plain'],
  ['user', 'offline', 'strict'],
]

test.each(plainly.filter(([daemon]) => daemons.includes(daemon)))(
  'under a daemon of %s %s is weakened nowhere, whoever takes more than a limit is stopped by it, and what holds it is said: %s',
  { timeout: longestMs },
  async (daemon, profile, how) => {
    const found = await verify(daemon, profile, how, ...limits.map(({ text }) => text))
    const { probes, enforcedBy, verdict } = found
    expect(probes.filter(({ brokenArm }) => brokenArm !== null)).toEqual([])
    expect(probes.map(({ id }) => id)).toEqual(catalogue.map(({ id }) => id))
    const stated = found.assertions.slice(-limits.length)
    expect(stated.map(({ text, observed }) => ({ text, observed }))).toEqual(limits)
    const seen = (id: string): string | undefined => probes.find((probe) => probe.id === id)?.observed
    expect(seen('resources.memory')).toBe(`oom (held by ${enforcedBy.memory})`)
    // What stands in a control group is looked at, too, where one holds it.
    expect(seen('resources.processes')?.replace(', as expected', '')).toBe(
      `EAGAIN (held by ${enforcedBy.pids})`,
    )
    // To whoever is strict, best effort that comes to nothing is a failure.
    const asHeld = enforcedBy.cpu !== 'none' ? 'pass' : how === 'strict' ? 'fail' : 'not-enforced'
    expect([probes.find(({ id }) => id === 'resources.cpu')?.verdict, verdict]).toEqual([asHeld, asHeld])
    const isSaid = (line: string): boolean => asHeld === 'fail' && line.startsWith('resources.cpu fail')
    expect(notPassed(found).filter((line) => !isSaid(line))).toEqual([])
  },
)
