// The battery in the real sandboxes of real launches, by a daemon of root and of an ordinary user, with every control taken out in turn.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import type { Verdict, Verification } from '../../src/verify/result.ts'
import { asUser } from '../support/as-user.ts'
import { daemons } from '../support/escape.ts'
import { isSound } from '../support/verification.ts'

type Found = Verification & { readonly leftAtHome: readonly string[] }

const script = new URL('../support/run-verify.ts', import.meta.url).pathname
const patienceMs = 240_000

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

/** What neither the profile nor this machine has: everything else is tried. */
const nothingOf = (profile: string, daemon: 'root' | 'user'): string[] => [
  ...(existsSync('/proc/sysrq-trigger') ? [] : ['proc.sysrq']),
  ...(process.arch === 'arm64' ? ['syscalls.x32', 'syscalls.i386'] : []),
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

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test.each(['offline', 'allowlisted-egress'])(
    '%s holds, is seen open without its controls, and goes red without each',
    { timeout: patienceMs },
    async (profile) => {
      const found = await verify(daemon, profile, 'self-check')
      expect(notPassed(found)).toEqual([])
      expect(found.probes.map(({ id }) => id)).toEqual(catalogue.map(({ id }) => id))
      expect(untriedPasses(found)).toEqual([])
      for (const { id, brokenArm } of found.probes.filter(({ verdict }) => verdict === 'pass'))
        expect(brokenArm?.isRed, id).toBe(true)
      // Only root can give a file capabilities; whether a machine has one that has some is another's to say.
      const absent = of(found, 'not-applicable').filter(
        (id) => daemon === 'root' || id !== 'capabilities.of-files',
      )
      expect(absent).toEqual(nothingOf(profile, daemon))
      const isHeldHere = found.enforcedBy.cpu !== 'none'
      expect(of(found, 'not-enforced')).toEqual(isHeldHere ? [] : ['resources.cpu'])
      expect(found.verdict).toBe(isHeldHere ? 'pass' : 'not-enforced')
      expect(found.leftAtHome).toEqual([])
      expect(plantedIn(found).filter((path) => existsSync(path))).toEqual([])
    },
  )

  test(
    'without a self-check nothing is weakened, and whoever takes more than a limit is stopped by that limit',
    { timeout: patienceMs },
    async () => {
      const found = await verify(daemon, 'node', 'plain', ...limits.map(({ text }) => text))
      expect(
        found.assertions.slice(-limits.length).map(({ text, observed }) => ({ text, observed })),
      ).toEqual(limits)
      expect(notPassed(found)).toEqual([])
      expect(found.probes.filter(({ brokenArm }) => brokenArm !== null)).toEqual([])
    },
  )
})

test('what holds a limit on this machine stands in what was observed', { timeout: patienceMs }, async () => {
  const { probes, enforcedBy, verdict } = await verify('user', 'offline', 'strict')
  const of = (id: string): string | undefined => probes.find((probe) => probe.id === id)?.observed
  expect(of('resources.memory')).toBe(`oom (held by ${enforcedBy.memory})`)
  // To whoever is strict, best effort that comes to nothing is a failure.
  const asHeld = enforcedBy.cpu === 'none' ? 'fail' : 'pass'
  expect([probes.find(({ id }) => id === 'resources.cpu')?.verdict, verdict]).toEqual([asHeld, asHeld])
  expect(of('resources.processes')).toBe(`EAGAIN (held by ${enforcedBy.pids})`)
})
