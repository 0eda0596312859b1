// A credential of the verification's own comes where its entry says and nowhere else, in each part of a conversation.
import { expect, test } from 'vitest'
import { type CanarySecret, leaseCanary } from '../../../src/verify/lab/secrets.ts'
import { type Change, otherBuild } from '../../support/other-build.ts'
import { tempDir } from '../../support/temp-dir.ts'

/** What goes astray in a build in which this is otherwise. */
const astrayIn = async (...changes: readonly Change[]): Promise<readonly string[]> => {
  await using folder = await tempDir()
  await using build = await otherBuild(...changes)
  const { leaseCanary: lease } = build.load('verify/lab/secrets.js') as {
    leaseCanary: typeof leaseCanary
  }
  const { signal } = new AbortController()
  using secret: CanarySecret = await lease(folder.path, signal)
  return await secret.astray(signal)
}

test('nothing of a credential goes astray', async () => {
  await using folder = await tempDir()
  const { signal } = new AbortController()
  using secret = await leaseCanary(folder.path, signal)
  expect(await secret.astray(signal)).toEqual([])
})

/** A source that is read in more time than a lease of 20 ms has. */
const slowSource: Change = [
  'credentials/broker.js',
  'return readSecret(',
  'await new Promise((resolve) => setTimeout(resolve, 60));\n        return readSecret(',
]

test('on a machine that is slow, neither', async () => {
  expect(await astrayIn(slowSource)).toEqual([])
})

test('two secrets for one host that are open at once are seen to be, on a machine that is slow, too', async () => {
  const unheld: Change = [
    'credentials/windows.js',
    'if (others.some((secrets) => conflict(secrets, waiter.secrets))) {',
    'if (others.length > 9) {',
  ]
  expect(await astrayIn(slowSource, unheld)).toEqual(['two secrets for one host: open at once'])
})

/** Doors that are shut for another reason than they are told. */
const shutBy = (reason: string): Change => [
  'egress/carry.js',
  'throw new Refusal(verdict.reason);',
  `throw new Refusal('${reason}', 'failed');`,
]

test.each(['connect-timeout', 'dns-timeout', 'client-left'])(
  'doors that were to be shut, and at which a connection ended by %s, were not tried',
  async (reason) => {
    await expect(astrayIn(shutBy(reason))).rejects.toThrow(`not tried, ${reason}`)
  },
)

test('that nothing came is not taken for doors that are shut', async () => {
  expect(await astrayIn(shutBy('port-not-listed'))).toEqual([
    'once the doors were shut, on its way: port-not-listed in place of doors-shut',
  ])
})
