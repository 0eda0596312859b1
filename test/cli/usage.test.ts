// What a command line that is not understood is told: one line that names the word, and the help of the verb.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

test.each([
  ['nonsense', `unknown command 'nonsense'; see sallyport --help`],
  ['ps --nonsense', `unknown option '--nonsense'; see sallyport ps --help`],
  ['ps --jsn', `unknown option '--jsn' (Did you mean --json?); see sallyport ps --help`],
  ['profile', 'a verb is missing; see sallyport profile --help'],
  ['profile shw', `unknown command 'shw' (Did you mean show?); see sallyport profile --help`],
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
