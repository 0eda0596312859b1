// A group of its own for a daemon in the background: asked for where it is of use, and done without where nobody makes one.
import { expect, it } from 'vitest'
import { ownScope } from '../../src/cli/own-scope.ts'
import { tempDir } from '../support/temp-dir.ts'

it.each([
  ['who is root', 0, 'v2'],
  ['whom root gave folders of version 1', 1000, 'v1'],
] as const)('nothing is asked for %s', async (_whom, uid, level) => {
  // The same variables would lead to the systemd of whoever runs this.
  expect(await ownScope(process.env, level, uid)).toEqual([])
})

it('a user without a systemd of its own does without', async () => {
  await using folder = await tempDir()
  expect(await ownScope({ XDG_RUNTIME_DIR: folder.path }, 'none', 1000)).toEqual([])
})
