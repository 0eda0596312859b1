// A credential of the verification's own comes where its entry says and nowhere else, in each part of a conversation.
import { expect, test } from 'vitest'
import { leaseCanary } from '../../../src/verify/lab/secrets.ts'
import { tempDir } from '../../support/temp-dir.ts'

test('nothing of a credential goes astray', async () => {
  await using folder = await tempDir()
  const { signal } = new AbortController()
  using secret = await leaseCanary(folder.path, signal)
  expect(await secret.astray(signal)).toEqual([])
})
