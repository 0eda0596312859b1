// Writing a snapshot: whole, or not at all.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { beginning, segmentPath } from '../../src/journal/segments.ts'
import { snapshotPath, writeSnapshot } from '../../src/journal/snapshot.ts'
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
