// What a command line that is not understood is told: one line that names the word, and the help of the verb.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

test.each([
  ['nonsense', `unknown command 'nonsense'; see sallyport --help`],
  ['ps --nonsense', `unknown option '--nonsense'; see sallyport ps --help`],
  ['ps --jsn', `unknown option '--jsn' (Did you mean --json?); see sallyport ps --help`],
  ['profile', 'a verb is missing; see sallyport profile --help'],
  ['profile shw', `unknown command 'shw' (Did you mean show?); see sallyport profile --help`],
  ['profile show', `missing required argument 'profile'; see sallyport profile show --help`],
  ['audit show --nonsense', `unknown option '--nonsense'; see sallyport audit show --help`],
  ['hold --lineage=', '--lineage: got "", expected a name; mend it or leave it out'],
  ['audit tail --call=', '--call: got "", expected a name; mend it or leave it out'],
  ['ps --runtime=', '--runtime: got "", expected a path; mend it or leave it out'],
  ['doctor --runtime=', '--runtime: got "", expected a path; mend it or leave it out'],
  [
    'verify --server files --driver docker',
    '--driver: got docker, and no profile; a server is tried under the driver of its own entry, so leave it out',
  ],
  ['approve ', '<id>: got "", expected an id of sallyport approvals; say which'],
  ['deny ', '<id>: got "", expected an id of sallyport approvals; say which'],
  [
    `approve ${'x'.repeat(129)}`,
    `<id>: got "${'x'.repeat(100)}…", expected an id of sallyport approvals; say which`,
  ],
  ['help nonsense', `unknown command 'nonsense'; see sallyport --help`],
])('sallyport %s', (line, said) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...line.split(' ')], {
    encoding: 'utf8',
  })
  expect({ status, stdout, stderr }).toEqual({
    status: 7,
    stdout: '',
    stderr: `sallyport: ${said} (ERR_USAGE)\n`,
  })
})

test('a state folder whose name does something to a terminal is told without doing it', async () => {
  await using home = await tempDir()
  const { status, stderr } = spawnSync(
    process.execPath,
    [cli, 'audit', 'verify', '--state', join(home.path, '\u001b[31mx')],
    { encoding: 'utf8' },
  )
  expect(status).toBe(8)
  expect(stderr).toContain(`${home.path}/\\x1b[31mx/journal holds no journal`)
  expect(stderr).not.toContain('\u001b')
})
