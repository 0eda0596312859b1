// A file's digest, head and markers, wherever its chunks end.
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { digestFile } from '../../../src/sandbox/program/pinned-file.ts'
import { tempDir } from '../../support/temp-dir.ts'

const chunk = 1 << 18
const marker = 'MARKER'

test.each([0, 1, 511, 512, chunk - 6, chunk - 5, chunk - 1, chunk, 2 * chunk - 3])(
  'a marker at byte %i is found, and none that is not there',
  async (at) => {
    await using folder = await tempDir()
    const path = join(folder.path, 'file')
    const content = Buffer.alloc(3 * chunk + 7, 'ab')
    content.write(marker, at)
    await writeFile(path, content)
    expect(await digestFile(path, ['MARKED', marker])).toEqual({
      sha256: createHash('sha256').update(content).digest('hex'),
      marker,
      head: content.subarray(0, 512),
    })
    expect((await digestFile(path, ['MARKED'])).marker).toBeNull()
  },
)

test('an empty file has a digest, and nothing else', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'empty')
  await writeFile(path, '')
  const sha256 = createHash('sha256').digest('hex')
  expect(await digestFile(path, [marker])).toEqual({ sha256, marker: null, head: Buffer.alloc(0) })
})
