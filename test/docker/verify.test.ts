// verify in containers of a real engine: the battery without each control in turn, a server that is run, and who may not.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { driversIn, examineHost } from '../../src/sandbox/drivers.ts'
import { catalogue } from '../../src/verify/catalogue.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import { formats } from '../../src/verify/report/formats.ts'
import { type Verification } from '../../src/verify/result.ts'
import { verifyProfile } from '../../src/verify/verify.ts'
import { asUser } from '../support/as-user.ts'
import { configOf, fixture, place } from '../support/daemon.ts'
import { engineTest } from '../support/engine.ts'
import { withoutForeignCalls } from '../support/escape.ts'
import { tempDir } from '../support/temp-dir.ts'
import { reportOf, verification } from '../support/verification.ts'

const isRoot = process.getuid?.() === 0

/** What the engine does by itself: there is no launch in which it is left out. */
const engineItself = new Set(['environment.start', 'descriptors.held'])

/** What no container has, or none of a profile without a network, or not this machine. */
const absent = new Set([
  ...(await withoutForeignCalls()),
  'capabilities.root-group',
  'capabilities.root-user',
  'files.staged',
  'network.broad-patterns',
  'network.budgets',
  'network.doors-shut',
  'network.patterns',
  'network.relay-end',
  'network.relay-stop',
  'network.secrets',
  'network.told',
  'proc.sysrq',
  'syscalls.one-program',
  ...(isRoot ? [] : ['capabilities.of-files']),
])

const notRed = ({ probes }: Verification): readonly string[] =>
  probes.flatMap(({ id, control, verdict, detail, positiveControl, brokenArm }) => {
    if (verdict === 'not-applicable' && absent.has(id)) return []
    if (verdict === 'pass' && positiveControl?.isOpen === true && brokenArm?.isRed === true) return []
    if (verdict === 'pass' && engineItself.has(id) && brokenArm === null) return []
    return [`${id} ${verdict} without ${control}: ${brokenArm?.observed ?? 'no arm'}; ${detail}`]
  })

/** Controls that are others in a sandbox that has a network. */
const wayOut: readonly ControlId[] = [
  'net-namespace',
  'resolver',
  'relay',
  'relay-rights',
  'relay-end',
  'proxy',
]

engineTest(
  'every probe holds in a container, is seen open without its control, and goes red without it',
  { timeout: 620_000 },
  async ({ engine }) => {
    await using home = await tempDir()
    const host = { env: engine.environment, home: home.path, uid: process.getuid?.() ?? -1 }
    const verify = (profile: string, controls?: readonly ControlId[]): Promise<Verification> =>
      verifyProfile(profile, {
        host,
        driver: 'docker',
        selfCheck: true,
        patienceMs: 600_000,
        ...(controls && { controls }),
      })
    const [alone, connected] = await Promise.all([verify('offline'), verify('allowlisted-egress', wayOut)])
    expect([...alone.inspections, ...connected.inspections]).toEqual([])
    expect([...notRed(alone), ...notRed(connected)]).toEqual([])
    expect([alone.verdict, connected.verdict]).toEqual(['pass', 'pass'])
    expect(alone.probes.map(({ id }) => id)).toEqual(catalogue.map(({ id }) => id))
    const cpu = alone.probes.find(({ id }) => id === 'resources.cpu')
    expect(cpu).toMatchObject({ observed: 'as expected (held by engine)', brokenArm: { isRed: true } })
  },
)

interface Seen {
  readonly id: string
  readonly verdict: string
  readonly observed: string
}

const reportFrom = async (child: ChildProcess): Promise<readonly Seen[]> => {
  const ended = once(child, 'close')
  const out = child.stdout === null ? '' : await text(child.stdout)
  await ended
  const { verifications } = JSON.parse(out) as {
    readonly verifications: readonly {
      readonly probes: readonly Seen[]
      readonly inspections: readonly Seen[]
    }[]
  }
  return verifications.flatMap(({ probes, inspections }) => [...probes, ...inspections])
}

engineTest(
  'a server in a container is started, listed, spoken to and looked at from outside',
  async ({ engine }) => {
    await using docs = await tempDir()
    await writeFile(join(docs.path, 'a.txt'), 'a', { mode: 0o644 })
    const echo = fixture('echo', { driver: 'docker', profile: 'node', env: { REGION: 'north' } })
    const rules = [{ permission: 'mcp:*:*', action: 'allow' }]
    await using at = await place(configOf({ echo }, { rules }))
    const seen = await reportFrom(
      at.start(['verify', '--server', 'echo', '--format', 'json'], engine.environment),
    )
    const isRight = ({ id, verdict }: Seen): boolean =>
      verdict === 'pass' || (verdict === 'not-applicable' && absent.has(id))
    expect(seen.filter((one) => !isRight(one))).toEqual([])
    expect(seen.length).toBeGreaterThan(135)
    const of = (id: string): string | undefined => seen.find((one) => one.id === id)?.observed
    expect(of('server.started')).toMatch(/^pid \d+ on the host$/)
    expect(of('server.listed')).toContain('3 tools')
    expect(of('server.gone')).toContain('nothing is left')
    expect(await engine.engine.list(['io.sallyport.server=echo'])).toEqual([])
  },
)

engineTest('an engine that a user may not use is named to that user, with the reason', async ({ engine }) => {
  const { DOCKER_HOST } = engine.environment
  expect(driversIn(await examineHost({ DOCKER_HOST })).find(({ driver }) => driver === 'docker')).toEqual({
    driver: 'docker',
    why: null,
  })
  const nobody = 'unix:///nonexistent/engine.sock'
  const [, docker] = isRoot
    ? (JSON.parse(await asUser('support/run-drivers.ts', DOCKER_HOST)) as ReturnType<typeof driversIn>)
    : driversIn(await examineHost({ DOCKER_HOST: nobody }))
  expect(docker?.why).toMatch(isRoot ? /EACCES.*; .*group of the socket/ : /ENOENT/)
  const unusable = [{ driver: 'docker' as const, why: docker?.why ?? '' }]
  const report = { ...reportOf(verification({})), unusable }
  expect(formats.text(report)).toContain(`not tried under docker: ${docker?.why}`)
  expect(JSON.parse(formats.json(report))).toMatchObject({ unusable_drivers: unusable })
})
