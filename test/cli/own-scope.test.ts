// A group of its own for a daemon in the background: asked for where it is of use, and done without where nobody makes one.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ownScope } from '../../src/cli/own-scope.ts'
import { tempDir } from '../support/temp-dir.ts'

it.each([
  ['who is root', 0, 'v2'],
  ['whom root gave folders of version 1', 1000, 'v1'],
] as const)('nothing is asked for %s', async (_whom, uid, level) => {
  // The same variables would lead to the systemd of whoever runs this.
  expect(await ownScope(process.env, level, uid)).toEqual({ words: [], env: process.env })
})

it('a user without a systemd of its own does without', async () => {
  await using folder = await tempDir()
  const env = { XDG_RUNTIME_DIR: folder.path }
  expect(await ownScope(env, 'none', 1000)).toEqual({ words: [], env })
})

it.runIf(existsSync('/usr/bin/systemd-run'))(
  'a daemon that a host starts, which gets hardly a variable, asks the systemd of its user all the same',
  async () => {
    await using folder = await tempDir()
    await mkdir(join(folder.path, 'systemd'))
    let asked = 0
    const systemd = createServer((socket) => void (asked++, socket.destroy()))
    await once(systemd.listen(join(folder.path, 'systemd/private')), 'listening')
    try {
      expect((await ownScope({ PATH: process.env['PATH'] }, 'none', 1000, folder.path)).words).toEqual([])
      expect(asked).toBeGreaterThan(0)
    } finally {
      systemd.close()
    }
  },
)
