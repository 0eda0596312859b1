// A server finds no key of the daemon's, though the session keyring passes through every namespace.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { attempts, brokenAttempts, daemons, escapeProbe, openOf, withoutFilter } from '../support/escape.ts'

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server uses no keyring', async () => {
    const found = await attempts(daemon, 'keyring.')
    expect(found).toEqual({ 'keyring.add': 'EPERM', 'keyring.search-session': 'EPERM' })
  })
})

const search = async (...program: string[]): Promise<string> =>
  (await promisify(execFile)(escapeProbe(), ['--plant', ...program])).stdout

test('a bare child finds the key that was planted in the daemon’s session keyring', async () => {
  expect(await search(escapeProbe(), 'keyring.search')).toContain('keyring.search-session open')
})

test('a server does not, even without the filter: the launcher gave the sandbox a keyring of its own', async () => {
  const script = fileURLToPath(new URL('../support/search-keyring.ts', import.meta.url))
  expect((await search(process.execPath, script)).trim()).toMatch(
    /^keyring.search-session (ENOKEY|EACCES|EKEYREVOKED)$/,
  )
})

test('without the filter a server would use keyrings', async () => {
  expect(openOf(await brokenAttempts('keyring.add', withoutFilter))).toEqual(['keyring.add'])
})
