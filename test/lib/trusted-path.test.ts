// Real files, modes, owners and links: whoever else could change what lies at a path is found, wherever on the way.
import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { followTrusted } from '../../src/lib/trusted-path.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

const own = process.getuid?.() ?? 0
/** Gid of `games` on Debian and Fedora alike: nobody's primary group in whose name tests run */
const foreignGroup = 20

async function tree() {
  const dir = await tempDir()
  const folder = `${dir.path}/a/b`
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const file = `${folder}/file`
  await writeFile(file, 'x', { mode: 0o644 })
  return { dir, folder, file, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

const faultAt = async (path: string, owners: readonly number[] = [own]) => {
  const followed = await followTrusted(path, owners)
  return followed.isTrusted ? null : followed.distrust
}

test('a file of one’s own below a sticky folder of root’s is trusted', async () => {
  await using at = await tree()
  expect(await followTrusted(at.file, [own])).toMatchObject({ isTrusted: true, real: at.file })
})

describe('is not trusted', () => {
  test.each([
    ['a file', 'file', 0o646],
    ['its folder', 'folder', 0o757],
    ['a folder above', 'above', 0o757],
  ])('%s that everybody can write', async (_, which, mode) => {
    await using at = await tree()
    const target = { file: at.file, folder: at.folder, above: `${at.dir.path}/a` }[which] ?? ''
    await chmod(target, mode)
    expect(await faultAt(at.file)).toMatchObject({ place: target, what: 'can be written by everybody' })
    await chmod(target, 0o755)
    expect(await faultAt(at.file)).toBeNull()
  })

  test.runIf(isRoot)('a file or folder that a group with others in it can write', async () => {
    await using at = await tree()
    for (const target of [at.file, at.folder]) {
      await chown(target, 0, foreignGroup)
      await chmod(target, 0o775)
      expect((await faultAt(at.file))?.what).toBe(`can be written by group ${foreignGroup}`)
      await chmod(target, 0o755)
      expect(await faultAt(at.file)).toBeNull()
    }
  })

  test('a link in a folder that others can write, whatever it leads to', async () => {
    await using at = await tree()
    await mkdir(`${at.dir.path}/open`)
    await symlink(at.file, `${at.dir.path}/open/link`)
    await chmod(`${at.dir.path}/open`, 0o777)
    expect((await faultAt(`${at.dir.path}/open/link`))?.place).toBe(`${at.dir.path}/open`)
  })

  test.runIf(isRoot)('a file or folder of another user’s, unless that user is an owner', async () => {
    await using at = await tree()
    for (const target of [at.file, at.folder]) {
      await chown(target, nobody, nobody)
      expect((await faultAt(at.file))?.what).toBe(`belongs to uid ${nobody}`)
      expect(await faultAt(at.file, [own, nobody])).toBeNull()
      await chown(target, 0, 0)
    }
  })
})

test('links are followed as the kernel follows them, and a circle ends', async () => {
  await using at = await tree()
  await symlink('b', `${at.dir.path}/a/c`)
  await symlink('../a/c/../b', `${at.dir.path}/a/d`)
  expect(await followTrusted(`${at.dir.path}/a/d/file`, [own])).toMatchObject({ real: at.file })
  await symlink('loop', `${at.dir.path}/loop`)
  expect((await faultAt(`${at.dir.path}/loop`))?.what).toContain('circle')
})

test('a path that is not there is the system’s error', async () => {
  await using at = await tree()
  await expect(followTrusted(`${at.file}-not`, [own])).rejects.toThrow(/ENOENT/)
})
