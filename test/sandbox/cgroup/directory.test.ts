// A control group that can't be looked at: what is said of it is what was tried.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tempDir } from '../../support/temp-dir.ts'

/** Removes a folder with no descriptor to spare; prints what was said of the failure. */
const remove = `
import { closeSync, openSync } from 'node:fs'
import { removeDirectory } from ${JSON.stringify(new URL('../../../src/sandbox/cgroup/directory.ts', import.meta.url).href)}
const held = []
try { for (;;) held.push(openSync('/dev/null')) } catch {}
const failed = await removeDirectory(process.argv[1], 50).catch((error) => error)
for (const descriptor of held) closeSync(descriptor)
console.log(JSON.stringify({ code: failed.code, message: failed.message, cause: failed.cause?.code }))
`

test('a group that no descriptor is left to look at is not said to have been killed', async () => {
  await using folder = await tempDir()
  mkdirSync(join(folder.path, 'group', 'below'), { recursive: true })
  const command = [process.execPath, '--input-type=module', '-e', remove, join(folder.path, 'group')]
  const said = execFileSync('prlimit', ['--nofile=64', ...command], { encoding: 'utf8', timeout: 60_000 })
  expect(JSON.parse(said)).toEqual({
    code: 'ERR_SHORTAGE',
    message: expect.stringMatching(/could not be looked at or killed for 50 ms: EMFILE; raise the limit/),
    cause: 'EMFILE',
  })
})
