// A group is private only where the machine's own files say that one user, and nobody else, is in it.
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { isPrivateGroup } from '../../src/lib/private-group.ts'
import { tempDir } from '../support/temp-dir.ts'

const passwd = [
  'root:x:0:0:root:/root:/bin/sh',
  'ada:x:1000:1000::/home/ada:/bin/sh',
  'bob:x:1001:1001::/home/bob:/bin/sh',
]
const group = ['root:x:0:', 'ada:x:1000:', 'bob:x:1001:', 'staff:x:50:']

async function judged(
  users: readonly string[],
  groups: readonly string[],
  gid: number,
  uid: number,
): Promise<boolean> {
  await using dir = await tempDir()
  await writeFile(`${dir.path}/passwd`, users.join('\n'))
  await writeFile(`${dir.path}/group`, groups.join('\n'))
  return await isPrivateGroup(gid, uid, dir.path)
}

test('a user’s own group is private to that user', async () => {
  expect(await judged(passwd, group, 1000, 1000)).toBe(true)
  expect(await judged(passwd, ['ada:x:1000:ada'], 1000, 1000)).toBe(true)
})

test.each([
  ['that is another user’s', passwd, group, 1001],
  ['that lists somebody else', passwd, ['ada:x:1000:ada,bob'], 1000],
  ['that is somebody else’s primary group, too', [...passwd, 'eve:x:1002:1000::/:/bin/sh'], group, 1000],
  ['of the machine, without a user of its own', passwd, group, 50],
  ['that the files do not have', passwd, ['staff:x:50:'], 1000],
  ['with two entries', passwd, [...group, 'other:x:1000:bob'], 1000],
] as const)('a group %s is not', async (_, users, groups, gid) => {
  expect(await judged(users, groups, gid, 1000)).toBe(false)
})

test('without the files nobody is known', async () => {
  await using dir = await tempDir()
  expect(await isPrivateGroup(1000, 1000, dir.path)).toBe(false)
})
