// verify in gVisor: the battery with what is expected there, its arms where they mean something, and a server that is run.
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import { formats } from '../../src/verify/report/formats.ts'
import type { Verification } from '../../src/verify/result.ts'
import { verifyProfile } from '../../src/verify/verify.ts'
import { configOf, fixture, place } from '../support/daemon.ts'
import { withoutForeignCalls } from '../support/escape.ts'
import { gvisor, hasGvisor, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { tempDir } from '../support/temp-dir.ts'
import { reportOf } from '../support/verification.ts'

/** What gVisor, a container or this profile has nothing of. */
const absent = new Set([
  ...(await withoutForeignCalls()),
  'files.nodev',
  'files.nosuid',
  'capabilities.root-group',
  'capabilities.root-user',
  'files.staged',
  'namespaces.counters',
  'network.broad-patterns',
  'network.budgets',
  'network.doors-shut',
  'network.patterns',
  'network.relay',
  'network.relay-end',
  'network.relay-stop',
  'network.secrets',
  'network.told',
  'proc.signals-of-pid-1',
  'proc.sysrq',
  'resources.watches',
  'syscalls.one-program',
  'capabilities.of-files',
])

const wrong = ({ probes, inspections, assertions }: Verification): readonly string[] =>
  [...probes, ...inspections, ...assertions].flatMap((one) =>
    one.verdict === 'pass' || ('id' in one && one.verdict === 'not-applicable' && absent.has(one.id))
      ? []
      : [`${'id' in one ? one.id : one.text}: ${one.observed}`],
  )

describe.runIf(hasGvisor)('verify in gVisor', () => {
  let engine: OwnEngine
  beforeAll(async () => {
    engine = await ownEngine({ runtimes: gvisor })
  })
  afterAll(() => engine[Symbol.asyncDispose]())

  test('a server: every probe holds, what is expected otherwise is said with its reason, and what is run is looked at', async () => {
    const echo = fixture('echo', { driver: 'docker', runtime: 'runsc', profile: 'node' })
    await using at = await place(configOf({ echo }, { rules: [{ permission: 'mcp:*:*', action: 'allow' }] }))
    const child = at.start(['verify', '--server', 'echo', '--format', 'json'], engine.environment)
    const { verifications } = JSON.parse(child.stdout === null ? '' : await text(child.stdout)) as {
      readonly verifications: readonly [Verification]
    }
    const [found] = verifications
    expect(wrong(found)).toEqual([])
    expect(found).toMatchObject({ verdict: 'pass', server: 'echo', driver: 'docker', runtime: 'runsc' })
    expect(found.probes.map(({ id }) => id)).toEqual(catalogue.map(({ id }) => id))
    const other = found.probes.filter(({ detail, observed }) =>
      `${detail} ${observed}`.includes('in gVisor:'),
    )
    expect(other.length).toBeGreaterThan(30)
    const sys = found.probes.find(({ id }) => id === 'proc.sys')
    expect(sys).toMatchObject({ layer: 'kernel', expected: expect.stringContaining('lo alone') })
    expect(found.inspections.find(({ id }) => id === 'server.listed')?.observed).toContain('3 tools')
    expect(await engine.engine.list(['io.sallyport.server=echo'])).toEqual([])
  }, 480_000)

  test('what gVisor does not hold by itself goes red without its control', async () => {
    await using home = await tempDir()
    const host = { env: engine.environment, home: home.path, uid: process.getuid?.() ?? -1 }
    const controls: readonly ControlId[] = ['seccomp', 'sized-scratch', 'read-only', 'clean-start']
    const options = { host, driver: 'docker', runtime: 'runsc', selfCheck: true, controls } as const
    const found = await verifyProfile('offline', options)
    expect(wrong(found)).toEqual([])
    const red = found.probes.flatMap(({ id, brokenArm }) => (brokenArm?.isRed === true ? [id] : []))
    expect(red).toEqual(
      expect.arrayContaining([
        'files.read-only',
        'files.mount',
        'files.fill',
        'namespaces.unshare',
        'proc.start',
      ]),
    )
    expect(red).not.toContain('syscalls.unknown')
    expect(formats.text(reportOf(found))).toContain('(docker runsc, ')
  }, 360_000)
})
