// Real links: root’s own, where nobody else can put one, are followed; any other stays in the path.
import { chmod, chown, lchown, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { throughRootLinks } from '../../src/lib/root-links.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

test('a path without links, and one that is not there, stay as they are', async () => {
  await using folder = await tempDir()
  for (const path of ['/', folder.path, join(folder.path, 'none/below')])
    expect(await throughRootLinks(path)).toBe(path)
})

describe.runIf(isRoot)('a link of root’s', () => {
  test.each([
    ['absolute', (folder: string) => join(folder, 'var/home')],
    ['relative', () => 'var/home'],
    ['upwards', () => 'var/../var/./home'],
  ])('is followed, %s', async (_, text) => {
    await using folder = await tempDir()
    await mkdir(join(folder.path, 'var/home/ann'), { recursive: true })
    await chown(join(folder.path, 'var/home/ann'), nobody, nobody)
    await symlink(text(folder.path), join(folder.path, 'home'))
    await symlink('home', join(folder.path, 'users'))
    const there = join(folder.path, 'var/home')
    expect(await throughRootLinks(join(folder.path, 'home'))).toBe(there)
    expect(await throughRootLinks(join(folder.path, 'users/ann/not/yet'))).toBe(join(there, 'ann/not/yet'))
  })

  test('in a circle ends nowhere', async () => {
    await using folder = await tempDir()
    await symlink('two', join(folder.path, 'one'))
    await symlink('one', join(folder.path, 'two'))
    expect(await throughRootLinks(join(folder.path, 'one/x'))).toMatch(/\/(one|two)\/x$/)
  })

  test.each([
    ['everybody may write, sticky', 0o1777, 0],
    ['everybody may write', 0o777, 0],
    ['somebody else has', 0o755, nobody],
  ])('stays in a folder that %s, and below one', async (_, mode, owner) => {
    await using folder = await tempDir()
    const [place, there] = [join(folder.path, 'place'), join(folder.path, 'there')]
    await mkdir(join(place, 'deep'), { recursive: true })
    await mkdir(there)
    for (const at of [place, join(place, 'deep')]) await symlink(there, join(at, 'link'))
    await chown(place, owner, owner)
    await chmod(place, mode)
    expect(await throughRootLinks(join(place, 'link/x'))).toBe(join(place, 'link/x'))
    // A folder of root's in a sticky one is replaced by nobody else
    const isSafe = mode === 0o1777
    const deep = join(place, 'deep/link/x')
    expect(await throughRootLinks(deep)).toBe(isSafe ? join(there, 'x') : deep)
  })
})

test.runIf(isRoot)('a link of somebody else’s stays, with all behind it', async () => {
  await using folder = await tempDir()
  await mkdir(join(folder.path, 'there'))
  await symlink('there', join(folder.path, 'theirs'))
  await lchown(join(folder.path, 'theirs'), nobody, nobody)
  await symlink('theirs', join(folder.path, 'ours'))
  expect(await throughRootLinks(join(folder.path, 'ours/x'))).toBe(join(folder.path, 'theirs/x'))
})
