// What could not be found out of a machine is an error, and does not pass for something that this machine has not.
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../../src/sandbox/cgroup/level.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import type * as Verify from '../../src/verify/verify.ts'
import { type Change, otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'

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

test(
  'whether a sandbox can have a network, where the trial of it was late',
  { timeout: 120_000 },
  async () => {
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
  },
)

test.each([
  ['a program that hangs', "['-c', 'sleep 9']", 'timeout: 200'],
  ['one that fails', "['-c', 'exit 3']", 'timeout: 30_000'],
])('whether a file gives a capability: %s', { timeout: 120_000 }, async (_, args, patience) => {
  const late: Change = [
    'verify/lab/exhibit.js',
    '(program, [list], { ...drop, env: {}, timeout: ampleMs })',
    `('/bin/sh', ${args}, { env: {}, ${patience} })`,
  ]
  expect((await verdictsIn([late])).get('capabilities.of-files')).toMatch(
    /^error: there was nothing to try; whether a file gives capabilities here is not known: /,
  )
})

const memory = detectCgroups().bases.memory?.version ?? null

describe.runIf(memory !== null)('what may be swapped beyond the memory of a control group', () => {
  // Neither can be read, by root either.
  const [swapFile, shut, absent] =
    memory === 1
      ? ["'memory.memsw.limit_in_bytes'", "'memory.force_empty'", "'memory.absent'"]
      : ["'memory.swap.max'", "'cgroup.kill'", "'memory.absent'"]
  const heldBy = (file: string): Change => ['verify/lab/held.js', swapFile, file]

  test('by a file that can’t be read', { timeout: 60_000 }, async () => {
    const found = await verdictsIn([heldBy(shut)], ['memory-limit'])
    expect(found.get('resources.swap')).toBe('error: it could not be tried')
  })

  test('by a group that is none, which has no such file either', { timeout: 60_000 }, async () => {
    const elsewhere: Change = ['verify/lab/held.js', 'return join(target, ', "return join('/proc', target, "]
    const found = await verdictsIn([elsewhere], ['memory-limit'])
    expect(found.get('resources.swap')).toBe('error: it could not be tried')
  })

  test('where nothing counts it, on a machine that swaps', { timeout: 60_000 }, async () => {
    const swapping: Change = ['verify/scene.js', "includes('\\n')", "includes('F')"]
    const found = await verdictsIn([heldBy(absent), swapping], ['memory-limit'])
    expect(found.get('resources.swap')).toMatch(
      /^fail: swap of the control group: not counted, and this machine swaps/,
    )
  })

  test('where nothing counts it, on one that does not', { timeout: 60_000 }, async () => {
    const still: Change = ['verify/scene.js', "includes('\\n')", "includes('\\n\\n')"]
    const found = await verdictsIn([heldBy(absent), still], ['memory-limit'])
    expect(found.get('resources.swap')).toMatch(/^pass/)
  })
})
