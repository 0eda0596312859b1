// Which group a program has that runs as an account: the account's own, and never one that merely has its number.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accountGroup } from '../../src/lib/account-group.ts'
import { tempDir } from '../support/temp-dir.ts'

test.each([
  ['an account whose group has another number', 42, 65_534],
  ['an account whose group has its own', 1000, 1000],
  ['no account, and no group of that number', 4321, 4321],
  ['no account, where a group has that number', 27, null],
])('%s', async (_, uid, gid) => {
  await using etc = await tempDir()
  await writeFile(
    join(etc.path, 'passwd'),
    '_apt:x:42:65534::/:/usr/sbin/nologin\nann:x:1000:1000::/:/bin/sh\n',
  )
  await writeFile(join(etc.path, 'group'), 'shadow:x:42:\nsudo:x:27:ann\nann:x:1000:\n')
  expect(accountGroup(uid, etc.path)).toBe(gid)
})

test('a machine without either file has no accounts', async () => {
  await using etc = await tempDir()
  expect(accountGroup(1000, etc.path)).toBe(1000)
})
