// What could not be found out of a machine is an error, and does not pass for something that this machine has not.
import { execFile } from 'node:child_process'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../../src/sandbox/cgroup/level.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import type { Verification } from '../../src/verify/result.ts'
import type * as Verify from '../../src/verify/verify.ts'
import { asPoorUser } from '../support/as-user.ts'
import { type Change, otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'

const verdictsIn = async (
  changes: readonly Change[],
  controls: readonly ControlId[] = ['relay-rights', 'no-new-privileges', 'network-mode'],
): Promise<ReadonlyMap<string, string>> => {
  await using home = await tempDir()
  await using build = await otherBuild(...changes)
  const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: home.path, uid: process.getuid?.() ?? -1 }
  const { probes, earlier } = await verifyProfile('offline', { host, controls, isTriedOnce: true })
  expect(earlier, 'tried before').toEqual([])
  return new Map(probes.map(({ id, verdict, observed, detail }) => [id, `${verdict}: ${detail ?? observed}`]))
}

test('whether a sandbox can have a network, where the trial of it was late', async () => {
  const late: Change = [
    'sandbox/fingerprint/trial.js',
    'const network = await planNetwork(',
    'await new Promise((resolve) => setTimeout(resolve, 6000)); const network = await planNetwork(',
  ]
  const found = await verdictsIn([late])
  const unknown =
    'error: there was nothing to try; whether a sandbox here can have a network is not known: the trial of it was late'
  expect([found.get('network.relay'), found.get('network.as-stated')]).toEqual([unknown, unknown])
  expect(found.get('capabilities.setuid')).toMatch(/^(pass|not-applicable)/)
})

test('whether ::1 of the host is reached, where nothing could be planted there', async () => {
  const shut: Change = ['verify/lab/canaries.js', "listen(0, '::1')", "listen('/nonexistent/socket')"]
  await using home = await tempDir()
  await using build = await otherBuild(shut)
  const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: home.path, uid: process.getuid?.() ?? -1 }
  const { verdict, inspections } = await verifyProfile('offline', {
    host,
    controls: ['net-namespace'],
    isTriedOnce: true,
  })
  expect([verdict, inspections]).toEqual([
    'error',
    [
      expect.objectContaining({
        id: 'run.complete',
        observed: expect.stringContaining('/nonexistent/socket'),
      }),
    ],
  ])
})

test('a trial of the network that was late is made anew, and then known', async () => {
  const lateOnce: Change = [
    'sandbox/fingerprint/trial.js',
    'const network = await planNetwork(',
    'if (!tryEgress.isBusyNoMore) await new Promise((resolve) => setTimeout(resolve, 6000)); tryEgress.isBusyNoMore = true; const network = await planNetwork(',
  ]
  const found = await verdictsIn([lateOnce])
  expect(found.get('network.relay')).toMatch(/^not-applicable|^pass/)
  expect(found.get('network.as-stated')).toMatch(/^pass/)
})

test.each([
  ['a program that hangs', "['-c', 'sleep 9']", 'timeout: 200'],
  ['one that fails', "['-c', 'exit 3']", 'timeout: 30_000'],
])('whether a file gives a capability: %s', async (_, args, patience) => {
  const late: Change = [
    'verify/lab/exhibit.js',
    '(program, [list], { ...drop, env: {}, timeout: ampleMs })',
    `('/bin/sh', ${args}, { env: {}, ${patience} })`,
  ]
  expect((await verdictsIn([late])).get('capabilities.of-files')).toMatch(
    /^error: there was nothing to try; whether a file gives capabilities here is not known: /,
  )
})

const base = detectCgroups().bases.memory

describe('what a limit may have stopped is no pass where the machine', () => {
  const [pids, memory] = ['cannot exceed pids', 'cannot exceed memory']
  /** What the battery finds there is not looked at: a probe of it does for all */
  const statedAlone = 'once:user-mapping'

  test.runIf(isRoot)('has no more processes for its user', async () => {
    const script = 'support/run-verify.ts'
    const output = await asPoorUser(300, script, 'browser', statedAlone, pids)
    const { assertions } = JSON.parse(output) as Verification
    expect(assertions.filter(({ text }) => text === pids)).toEqual([
      expect.objectContaining({
        verdict: 'error',
        observed: 'it was not to be had outside of the sandbox either',
        evidence: [
          expect.stringMatching(/^the limit is 512 processes, 528 were tried: EAGAIN/),
          'outside: EAGAIN',
        ],
      }),
    ])
  })

  test.runIf(isRoot && base !== null)('has no more memory than that', async () => {
    const group = join(base?.path ?? '', `sp-poor-${process.pid}`)
    const most = base?.version === 1 ? 'memory.limit_in_bytes' : 'memory.max'
    await mkdir(group)
    try {
      await writeFile(join(group, most), `${700 * 2 ** 20}`)
      const script = fileURLToPath(new URL('../support/run-verify.ts', import.meta.url))
      const inGroup = ['-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, process.execPath, script]
      const { stdout } = await promisify(execFile)('sh', [...inGroup, 'node', statedAlone, memory])
      const { assertions } = JSON.parse(stdout) as Verification
      expect(assertions.filter(({ text }) => text === memory)).toEqual([
        expect.objectContaining({
          verdict: 'error',
          observed: expect.stringMatching(/^it takes 1140850688 bytes, and this host has \d+ free$/),
        }),
      ])
    } finally {
      await rmdir(group)
    }
  })
})

describe.runIf(base !== null)('what may be swapped beyond the memory of a control group', () => {
  // Neither can be read, by root either.
  const [swapFile, shut, absent] =
    base?.version === 1
      ? ["'memory.memsw.limit_in_bytes'", "'memory.force_empty'", "'memory.absent'"]
      : ["'memory.swap.max'", "'cgroup.kill'", "'memory.absent'"]
  const heldBy = (file: string): Change => ['verify/lab/held.js', swapFile, file]

  test('by a file that can’t be read', async () => {
    const found = await verdictsIn([heldBy(shut)], ['memory-limit'])
    expect(found.get('resources.swap')).toBe('error: it could not be tried')
  })

  test('by a group that is none, which has no such file either', async () => {
    const elsewhere: Change = ['verify/lab/held.js', 'return join(target, ', "return join('/proc', target, "]
    const found = await verdictsIn([elsewhere], ['memory-limit'])
    expect(found.get('resources.swap')).toBe('error: it could not be tried')
  })

  test('where nothing counts it, on a machine that swaps', async () => {
    const swapping: Change = ['verify/scene.js', "includes('\\n')", "includes('F')"]
    const found = await verdictsIn([heldBy(absent), swapping], ['memory-limit'])
    expect(found.get('resources.swap')).toMatch(
      /^fail: swap of the control group: not counted, and this machine swaps/,
    )
  })

  test('where nothing counts it, on one that does not', async () => {
    const still: Change = ['verify/scene.js', "includes('\\n')", "includes('\\n\\n')"]
    const found = await verdictsIn([heldBy(absent), still], ['memory-limit'])
    expect(found.get('resources.swap')).toMatch(/^pass/)
  })
})
