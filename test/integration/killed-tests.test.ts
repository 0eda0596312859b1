// Tests that are killed, as by whoever asks for an end twice, have no time to tidy up.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { isAlive } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'

const abandoned = fileURLToPath(new URL('apart/abandoned.ts', import.meta.url))

test('a test that is killed leaves no daemon behind', async () => {
  await using folder = await tempDir()
  const env = { ...process.env, TMPDIR: folder.path }
  const tests = spawn(process.execPath, [abandoned], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [told] = (await once(tests.stdout, 'data')) as [Buffer]
  const daemon = Number(told.toString())
  try {
    expect(isAlive(daemon)).toBe(true)
    tests.kill('SIGKILL')
    await eventually(() => !isAlive(daemon))
  } finally {
    if (isAlive(daemon)) process.kill(daemon, 'SIGKILL')
  }
})
