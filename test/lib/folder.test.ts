import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { makeFolder } from '../../src/lib/folder.ts'
import { sourcesOf, withoutComments } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const modeOf = (path: string): number => statSync(path).mode & 0o777

test('a folder is made with those above it, all of that mode, and one that is there stays as it is', async () => {
  await using at = await tempDir()
  mkdirSync(join(at.path, 'there'), { mode: 0o750 })
  makeFolder(join(at.path, 'there'), 0o700)
  makeFolder(join(at.path, 'there/a/b'), 0o700)
  makeFolder(join(at.path, 'there/a/b'), 0o700)
  expect(['there', 'there/a', 'there/a/b'].map((name) => modeOf(join(at.path, name)))).toEqual([
    0o750, 0o700, 0o700,
  ])
})

test.each([
  ['file', 'EEXIST'],
  ['file/below', 'ENOTDIR'],
  ['nowhere', 'EEXIST'],
  ['nowhere/below', 'EEXIST'],
])('%s, where no folder can be, is refused with %s', async (name, code) => {
  await using at = await tempDir()
  writeFileSync(join(at.path, 'file'), '')
  symlinkSync('/no/such/folder', join(at.path, 'nowhere'))
  expect(() => makeFolder(join(at.path, name), 0o700)).toThrow(expect.objectContaining({ code }) as Error)
})

test('a folder below one that takes none, as /proc says of any, is refused and not tried for ever', () => {
  const module = new URL('../../src/lib/folder.ts', import.meta.url).href
  const script = `
    import { makeFolder } from ${JSON.stringify(module)}
    try { makeFolder('/proc/no-such-process/a/b', 0o700) } catch ({ code, path }) { console.log(code, path) }`
  const args = ['--input-type=module', '-e', script]
  const { stdout, signal } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: patienceMs })
  expect({ stdout, signal }).toEqual({ stdout: 'ENOENT /proc/no-such-process\n', signal: null })
})

test('what a person may name a folder for is made by it alone', () => {
  const recursive = sourcesOf('src')
    .filter(({ path }) => !path.startsWith('verify/'))
    .filter(({ text }) => /mkdir(Sync)?\([^)]*recursive: true/.test(withoutComments(text)))
  expect(recursive.map(({ path }) => path)).toEqual([])
})
