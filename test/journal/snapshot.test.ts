// Writing a snapshot: whole, or not at all.
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { beginning, segmentPath } from '../../src/journal/segments.ts'
import { removeDraft, snapshotPath, writeSnapshot } from '../../src/journal/snapshot.ts'
import { counting } from '../support/keeping.ts'
import { tempDir } from '../support/temp-dir.ts'

test('one that can’t be written leaves no draft', async () => {
  await using dir = await tempDir()
  const end = { segment: 1, position: beginning, offset: 0, torn: null }
  writeFileSync(segmentPath(dir.path, end.segment), '')
  const folder = join(dir.path, 'snapshots')
  mkdirSync(folder)
  // No file takes the name of a folder.
  const taken = snapshotPath(dir.path, beginning.seq)
  mkdirSync(taken)
  await expect(writeSnapshot(dir.path, Buffer.alloc(32, 1), end, '{}')).rejects.toMatchObject({
    code: 'EISDIR',
  })
  expect(readdirSync(folder)).toEqual([basename(taken)])
})

test('a draft that a killed daemon left is gone with the next start, and nothing else', async () => {
  await using dir = await tempDir()
  const directory = join(dir.path, 'journal')
  const folder = join(directory, 'snapshots')
  mkdirSync(folder, { recursive: true })
  for (const name of ['.draft', '.draft.bak']) writeFileSync(join(folder, name), '{')
  await using _keeping = counting(directory, Buffer.alloc(32, 1)).keeping
  expect(readdirSync(folder)).toEqual(['.draft.bak'])
})

test.each<[string, (root: string, folder: string) => void]>([
  ['a folder', (_, folder) => mkdirSync(join(folder, '.draft'), { recursive: true })],
  [
    'a link',
    (root, folder) => {
      mkdirSync(folder)
      symlinkSync(join(root, 'elsewhere'), join(folder, '.draft'))
    },
  ],
  [
    'in another folder, which a link leads to',
    (root, folder) => {
      mkdirSync(join(root, 'elsewhere'))
      writeFileSync(join(root, 'elsewhere', '.draft'), '{')
      symlinkSync('elsewhere', folder)
    },
  ],
])('a draft that is %s is left', async (_, put) => {
  await using dir = await tempDir()
  const folder = join(dir.path, 'snapshots')
  put(dir.path, folder)
  removeDraft(dir.path)
  expect(readdirSync(folder)).toEqual(['.draft'])
})
