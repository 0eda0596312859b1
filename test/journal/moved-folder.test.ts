// A journal's folder that was moved away while something of it was under way.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { beginning } from '../../src/journal/segments.ts'
import { writeSnapshot } from '../../src/journal/snapshot.ts'
import { tempDir } from '../support/temp-dir.ts'

const key = Buffer.alloc(32, 1)
const end = { segment: 1, position: beginning, offset: 0, torn: null }

test('is not made anew for a snapshot', async () => {
  await using dir = await tempDir()
  const directory = join(dir.path, 'journal')
  await expect(writeSnapshot(directory, key, end, '{}')).rejects.toMatchObject({ code: 'ENOENT' })
  expect(existsSync(directory)).toBe(false)
})

test('leaves the one in its place as it is', async () => {
  await using dir = await tempDir()
  const directory = join(dir.path, 'journal')
  await mkdir(directory)
  await expect(writeSnapshot(directory, key, end, '{}')).rejects.toMatchObject({ code: 'ENOENT' })
  expect(existsSync(join(directory, 'snapshots'))).toBe(false)
})
