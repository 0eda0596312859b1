// A proxy that lets through what it should refuse is seen to, though nobody listens where that leads.
import { expect, test } from 'vitest'
import type * as Verify from '../../src/verify/verify.ts'
import { type Change, otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'

const allThrough: Change = [
  'egress/allowlist.js',
  "throw new Refusal(named.length === 0 ? 'name-not-listed' : 'port-not-listed')",
  "return { ...grants[0], host, port, private: true, tls: false, address: '127.0.0.9' }",
]

test('names and ports that nobody granted, which lead to nobody', async () => {
  await using home = await tempDir()
  await using build = await otherBuild(allThrough, [
    'verify/lab/patience.js',
    'ampleMs = 30_000',
    'ampleMs = 1_000',
  ])
  const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: home.path, uid: process.getuid?.() ?? -1 }
  const controls = ['proxy', 'patterns'] as const
  const { probes } = await verifyProfile('allowlisted-egress', { host, controls })
  const found = new Map(probes.map(({ id, verdict, observed }) => [id, `${verdict}: ${observed}`]))
  const dialled = 'let through, or not ours: connect-failed:econnrefused'
  expect(found.get('network.grants')).toMatch(new RegExp(`^fail: CONNECT granted.*: ${dialled}`))
  expect(found.get('network.hostile-names')).toMatch(new RegExp(`^fail: CONNECT .*: ${dialled}`))
  expect(found.get('network.patterns')).toMatch(
    /^error: why they were refused there: nothing of name-not-listed/,
  )
})
