// A journal's folder that was moved away while something of it was under way.
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { beginning, segmentPath } from '../../src/journal/segments.ts'
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

test('nothing is made in what takes the place of the folder while a snapshot is written', async () => {
  await using dir = await tempDir()
  for (let turns = 0; turns < 60; turns++) {
    const directory = join(dir.path, `journal-${turns}`)
    mkdirSync(directory)
    writeFileSync(segmentPath(directory, end.segment), '')
    const written = writeSnapshot(directory, key, end, '{}').catch(() => undefined)
    for (let turn = 0; turn < turns; turn++) await setImmediate()
    renameSync(directory, `${directory}-away`)
    mkdirSync(directory)
    await written
    expect(readdirSync(directory), `after ${turns} turns`).toEqual([])
  }
})
