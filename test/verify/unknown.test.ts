// What could not be found out of a machine is an error, and does not pass for something that this machine has not.
import { expect, test } from 'vitest'
import type * as Verify from '../../src/verify/verify.ts'
import { type Change, otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'

const verdictsIn = async (change: Change): Promise<ReadonlyMap<string, string>> => {
  await using home = await tempDir()
  await using build = await otherBuild(change)
  const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: home.path, uid: process.getuid?.() ?? -1 }
  const controls = ['relay-rights', 'no-new-privileges', 'network-mode'] as const
  const { probes, earlier } = await verifyProfile('offline', { host, controls, isTriedOnce: true })
  expect(earlier, 'tried before').toEqual([])
  return new Map(probes.map(({ id, verdict, detail }) => [id, `${verdict}: ${detail}`]))
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
    const found = await verdictsIn(late)
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
  expect((await verdictsIn(late)).get('capabilities.of-files')).toMatch(
    /^error: there was nothing to try; whether a file gives capabilities here is not known: /,
  )
})
