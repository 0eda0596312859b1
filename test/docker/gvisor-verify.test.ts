// verify in gVisor: the battery with what is expected there, its arms where they mean something, and a server that is run.
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue } from '../../src/verify/catalogue.ts'
import type { ControlId } from '../../src/verify/controls.ts'
import { formats } from '../../src/verify/report/report.ts'
import type { Verification } from '../../src/verify/result.ts'
import { verifyProfile } from '../../src/verify/verify.ts'
import { configOf, fixture, place } from '../support/daemon.ts'
import { gvisor, hasGvisor, ownEngine, type OwnEngine } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'
import { reportOf } from '../support/verification.ts'

const wrong = ({ probes, inspections, assertions }: Verification): readonly string[] =>
  [...probes, ...inspections, ...assertions].flatMap((one) =>
    one.verdict === 'pass' ? [] : [`${'id' in one ? one.id : one.text}: ${one.observed}`],
  )

describe.runIf(hasGvisor)('verify in gVisor', () => {
  let engine: OwnEngine
  beforeAll(async () => {
    engine = await ownEngine({ runtimes: gvisor })
  })
  afterAll(() => engine[Symbol.asyncDispose]())

  const verify = async (more: object): Promise<Verification> => {
    await using home = await tempDir()
    const host = { env: engine.environment, home: home.path, uid: process.getuid?.() ?? -1 }
    return await verifyProfile('offline', { host, driver: 'docker', runtime: 'runsc', ...more })
  }

  test('every probe holds, and what is expected otherwise is said with its reason and what holds it', async () => {
    const found = await verify({})
    expect(wrong(found)).toEqual([])
    expect(found).toMatchObject({ verdict: 'pass', driver: 'docker', runtime: 'runsc' })
    expect(found.probes.map(({ id }) => id)).toEqual(catalogue.map(({ id }) => id))
    const other = found.probes.filter(({ detail, observed }) =>
      `${detail} ${observed}`.includes('in gVisor:'),
    )
    expect(other.length).toBeGreaterThan(30)
    const sys = found.probes.find(({ id }) => id === 'proc.sys')
    expect(sys).toMatchObject({ layer: 'kernel', expected: expect.stringContaining('lo alone') })
    expect(formats.text(reportOf(found))).toContain('(docker runsc, ')
  }, 60_000)

  test('what gVisor does not hold by itself goes red without its control', async () => {
    const controls: readonly ControlId[] = ['seccomp', 'sized-scratch', 'read-only', 'clean-start']
    const { probes } = await verify({ selfCheck: true, controls })
    expect(probes.filter(({ verdict }) => verdict !== 'pass')).toEqual([])
    const red = probes.flatMap(({ id, brokenArm }) => (brokenArm?.isRed === true ? [id] : []))
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
  }, 60_000)

  test('a server is started, listed, spoken to and looked at from outside', async () => {
    const echo = fixture('echo', { driver: 'docker', runtime: 'runsc', profile: 'node' })
    await using at = await place(configOf({ echo }, { rules: [{ permission: 'mcp:*:*', action: 'allow' }] }))
    const child = at.start(['verify', '--server', 'echo', '--format', 'json'], engine.environment)
    const { verifications } = JSON.parse(child.stdout === null ? '' : await text(child.stdout)) as {
      readonly verifications: readonly Verification[]
    }
    expect(verifications.flatMap(wrong)).toEqual([])
    expect(verifications[0]).toMatchObject({ server: 'echo', runtime: 'runsc' })
    expect(await engine.engine.list([])).toEqual([])
  }, 90_000)
})
