// What a run of chaos is asked is judged before anything is started.
import { spawnSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { patienceMs } from '../support/patience.ts'
import { tempDir } from '../support/temp-dir.ts'

const chaos = fileURLToPath(new URL('chaos.ts', import.meta.url))

test.each([
  [['--seconds', 'abc'], '--seconds abc: use a number from 1 to 604800'],
  [['--seconds', '0'], '--seconds 0: use a number from 1 to 604800'],
  [['--seconds=-3'], '--seconds -3: use a number from 1 to 604800'],
  [['--seconds', '-3'], "Option '--seconds' argument is ambiguous"],
  [['--seconds', '1e99'], '--seconds 1e99: use a number from 1 to 604800'],
  [['--foo'], "Unknown option '--foo'"],
  [['storm'], "Unexpected argument 'storm'"],
  [['--seed'], "Option '--seed <value>' argument missing"],
  [['--seeds', ''], '--seeds : expected known, or seeds'],
  [
    ['--only', 'nothinglikeit'],
    '--only nothinglikeit: in no fault’s name; use words of these: the daemon is',
  ],
  [['--seeds', '1,2', '--only', 'guard,ghost'], '--only ghost: '],
  [['--only', ''], '--only : in no fault’s name'],
])('%j is refused by what is taken, in one line', async (args, said) => {
  await using folder = await tempDir()
  const env = { ...process.env, TMPDIR: folder.path }
  const { status, stdout, stderr } = spawnSync(process.execPath, [chaos, ...args], {
    env,
    encoding: 'utf8',
    timeout: patienceMs,
  })
  expect({ status, stdout }).toEqual({ status: 7, stdout: '' })
  expect(stderr).toMatch(/^chaos: .*\n$/)
  expect(stderr).toContain(said)
  expect(await readdir(folder.path)).toEqual([])
})
