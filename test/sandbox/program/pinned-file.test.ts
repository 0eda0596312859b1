// A file's digest, head and markers, wherever its chunks end.
import { createHash } from 'node:crypto'
import { rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { digestFile, pinFileOnce } from '../../../src/sandbox/program/pinned-file.ts'
import { eventually } from '../../support/eventually.ts'
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

/** Waits until the file system's clock, which may be coarse, is past the file's last change. */
const tick = async (path: string): Promise<void> => {
  const { ctimeMs } = await stat(path)
  await eventually(async () => {
    await writeFile(`${path}.tick`, '')
    return (await stat(`${path}.tick`)).ctimeMs > ctimeMs
  })
}

test.each<[string, (path: string) => Promise<void>]>([
  ['in its place', (path) => writeFile(path, 'other')],
  [
    'in its place, with the time put back',
    async (path) => {
      const { atime, mtime } = await stat(path)
      await writeFile(path, 'other')
      await utimes(path, atime, mtime)
    },
  ],
  [
    'by another file',
    async (path) => {
      await writeFile(`${path}.new`, 'other')
      await rename(`${path}.new`, path)
    },
  ],
])('a program that was replaced %s between two who share its reading is read again', async (_, replace) => {
  await using folder = await tempDir()
  const path = join(folder.path, 'program')
  await writeFile(path, 'first')
  const pinFile = pinFileOnce()
  const digest = async (): Promise<string> => (await pinFile(path, () => new Error('changed'))).pin.sha256
  const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex')
  expect([await digest(), await digest()]).toEqual([digestOf('first'), digestOf('first')])
  await tick(path)
  await replace(path)
  expect(await digest()).toEqual(digestOf('other'))
})
