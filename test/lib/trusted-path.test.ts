// Real files, modes, owners and links: whoever else could change what lies at a path is found, wherever on the way.
import { chmod, chown, link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { walkPath } from '../../src/lib/trusted-path.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

const own = process.getuid?.() ?? 0

async function tree() {
  const dir = await tempDir()
  const folder = `${dir.path}/a/b`
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const file = `${folder}/file`
  await writeFile(file, 'x', { mode: 0o644 })
  return { dir, folder, file, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

test('a file of one’s own below a sticky folder of root’s is trusted', async () => {
  await using at = await tree()
  expect(await walkPath(at.file, [own])).toEqual({ real: at.file, fault: null })
})

describe('is not trusted', () => {
  test.each([
    ['a file that its group can write', 'file', 0o664, 'writable by its group'],
    ['a file that everybody can write', 'file', 0o646, 'writable by everybody'],
    ['a folder that its group can write', 'folder', 0o775, 'writable by its group'],
    ['a folder above that everybody can write', 'above', 0o757, 'writable by everybody'],
  ])('%s', async (_, which, mode, why) => {
    await using at = await tree()
    const target = { file: at.file, folder: at.folder, above: `${at.dir.path}/a` }[which] ?? ''
    await chmod(target, mode)
    const { fault } = await walkPath(at.file, [own])
    expect(fault?.path).toBe(target)
    expect(fault?.why).toContain(why)
    await chmod(target, 0o755)
    expect((await walkPath(at.file, [own])).fault).toBeNull()
  })

  test('a link in a folder that others can write, whatever it leads to', async () => {
    await using at = await tree()
    await mkdir(`${at.dir.path}/open`)
    await symlink(at.file, `${at.dir.path}/open/link`)
    await chmod(`${at.dir.path}/open`, 0o777)
    const { fault } = await walkPath(`${at.dir.path}/open/link`, [own])
    expect(fault?.path).toBe(`${at.dir.path}/open`)
  })

  test.runIf(isRoot)('a file, a folder or a link of another user’s', async () => {
    await using at = await tree()
    for (const target of [at.file, at.folder]) {
      await chown(target, nobody, nobody)
      expect((await walkPath(at.file, [own])).fault?.why).toContain(`belongs to uid ${nobody}`)
      expect((await walkPath(at.file, [nobody])).fault).toBeNull()
      await chown(target, 0, 0)
    }
  })
})

test('links are followed as the kernel follows them, and a circle ends', async () => {
  await using at = await tree()
  await symlink('b', `${at.dir.path}/a/c`)
  await symlink('../a/c/../b', `${at.dir.path}/a/d`)
  expect((await walkPath(`${at.dir.path}/a/d/file`, [own])).real).toBe(at.file)
  await symlink('loop', `${at.dir.path}/loop`)
  await expect(walkPath(`${at.dir.path}/loop`, [own])).rejects.toThrow(/ELOOP/)
})

test('a path that is not there is the system’s error', async () => {
  await using at = await tree()
  await expect(walkPath(`${at.file}-not`, [own])).rejects.toThrow(/ENOENT/)
  await link(at.file, `${at.file}-hard`)
  expect((await walkPath(`${at.file}-hard`, [own])).fault).toBeNull()
})
