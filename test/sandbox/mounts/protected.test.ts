// Inside a writable mount, what the host runs programs from stays as it is.
import { existsSync, mkdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isProtectedName, protectMount } from '../../../src/sandbox/mounts/protected.ts'
import type { Mount } from '../../../src/sandbox/spec.ts'
import { mountOf } from '../../support/plan.ts'
import { expectRefusal } from '../../support/refusal.ts'
import { tempDir } from '../../support/temp-dir.ts'

const arrange = async (...files: readonly string[]) => {
  const folder = await tempDir()
  const root = realpathSync(folder.path)
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    if (!existsSync(join(root, file))) writeFileSync(join(root, file), '')
  }
  const protect = () => protectMount('probe', mountOf(root, '/w', { access: 'write' }))
  return { root, protect, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const shown = (mounts: readonly Mount[]): string[] =>
  mounts.map(({ access, target }) => `${access} ${target}`)

describe('a writable mount', () => {
  test('is refused with a folder whose name is not UTF-8, which nobody could search by name', async () => {
    await using place = await arrange('b/x.js')
    const plant = (name: string): Buffer =>
      Buffer.concat([Buffer.from(`${place.root}/`), Buffer.from(name, 'latin1')])
    writeFileSync(plant('file\xff'), '')
    expect(shown(await place.protect())).toEqual([])
    mkdirSync(join(place.root, 'a\uFFFD'))
    mkdirSync(plant('a\xff/.git'), { recursive: true })
    await expectRefusal(place.protect, 'ERR_MOUNT_REFUSED', 'a\\xff, whose name is not UTF-8')
  })

  test('has its version control, agent, IDE, shell and Sallyport files bound read-only on themselves', async () => {
    await using place = await arrange(
      '.git/config',
      '.vscode/tasks.json',
      '.mcp.json',
      'CLAUDE.md',
      '.bashrc',
      'sallyport.yaml',
      'x.js',
    )
    const mounts = await place.protect()
    expect(shown(mounts)).toEqual(
      ['.bashrc', '.git', '.mcp.json', '.vscode', 'CLAUDE.md', 'sallyport.yaml'].map(
        (name) => `read /w/${name}`,
      ),
    )
    const { dev, ino } = statSync(join(place.root, '.git'), { bigint: true })
    expect(mounts.find(({ target }) => target === '/w/.git')).toMatchObject({
      dev,
      ino,
      kind: 'directory',
      origin: 'protected',
    })
    expect(mounts.find(({ target }) => target === '/w/.mcp.json')).toMatchObject({ kind: 'file' })
  })

  test('has the folders between held in their place, each before what lies in it', async () => {
    await using place = await arrange('a/b/.git/config', 'a/.envrc', 'c/x.js')
    expect(shown(await place.protect())).toEqual([
      'write /w/a',
      'read /w/a/.envrc',
      'write /w/a/b',
      'read /w/a/b/.git',
    ])
  })

  test('is searched three folders deep and not inside node_modules or what is protected already', async () => {
    await using place = await arrange('a/b/c/.git', 'a/b/c/d/.git', 'node_modules/x/.git', '.git/hooks/.git')
    expect(shown(await place.protect()).filter((line) => line.startsWith('read'))).toEqual([
      'read /w/.git',
      'read /w/a/b/c/.git',
    ])
  })

  test('that holds nothing of the kind, or is a file, is left alone', async () => {
    await using place = await arrange('x.js', '.github.md', 'git/config')
    expect(await place.protect()).toEqual([])
    expect(await protectMount('probe', mountOf(join(place.root, 'x.js'), '/w', { access: 'write' }))).toEqual(
      [],
    )
  })

  test('has what a protected link leads to protected, where that is in it', async () => {
    await using place = await arrange('docs/agents.md')
    symlinkSync('docs/agents.md', join(place.root, 'AGENTS.md'))
    symlinkSync('/etc/hostname', join(place.root, 'CLAUDE.md'))
    symlinkSync('gone', join(place.root, '.mcp.json'))
    symlinkSync('.', join(place.root, '.claude'))
    expect(shown(await place.protect())).toEqual(['write /w/docs', 'read /w/docs/agents.md'])
  })

  test('with a link in the place of a version-control folder is refused', async () => {
    await using place = await arrange('real/config')
    symlinkSync('real', join(place.root, '.git'))
    await expectRefusal(place.protect, 'ERR_MOUNT_REFUSED', '.git', 'scratch copy')
  })

  test('with more protected files than can be mounted is refused', async () => {
    await using place = await arrange(...Array.from({ length: 257 }, (_, index) => `p${index}/.git`))
    await expectRefusal(place.protect, 'ERR_MOUNT_REFUSED', '257', '256')
  })
})

test('a protected name is exact', () => {
  expect(['.git', '.envrc', 'AGENTS.md'].every(isProtectedName)).toBe(true)
  expect(['git', '.gitignore', '.git2', '', 'README.md'].some(isProtectedName)).toBe(false)
})
