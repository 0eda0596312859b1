// What one container is given of the supervisor's own: all of it, or nothing.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeInstanceFolder } from '../../src/sandbox/docker/folder.ts'
import { tempDir } from '../support/temp-dir.ts'

const file = { target: '/seen', content: 'seen', mode: 0o444 }
const handles = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length

test('a folder has its files and a socket that listens, and is gone once it is let go', async () => {
  await using parent = await tempDir()
  const path = join(parent.path, 'i')
  const folder = await makeInstanceFolder(path, [file], process.geteuid?.() ?? 0)
  expect((await readdir(path)).toSorted()).toEqual(['0', 'control'])
  const socket = connect(folder.control)
  await folder.connected
  socket.destroy()
  await folder[Symbol.asyncDispose]()
  expect(existsSync(path)).toBe(false)
})

test.each([
  ['a file', [file, { ...file, mode: -1 }], process.geteuid?.() ?? 0],
  // An id that nobody can have
  ['the owner of its socket', [file], 2 ** 32],
])(
  'a folder of which %s can’t be made leaves neither itself nor a socket that listens',
  async (_, files, uid) => {
    await using parent = await tempDir()
    const before = handles()
    await expect(makeInstanceFolder(join(parent.path, 'i'), files, uid)).rejects.toThrow('out of range')
    expect(await readdir(parent.path)).toEqual([])
    expect(handles()).toBe(before)
  },
)
