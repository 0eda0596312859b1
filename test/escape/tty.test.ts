// A server has no terminal to type into.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { attempts, brokenAttempts, daemons, escapeProbe, openOf, withoutFilter } from '../support/escape.ts'

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server opens no terminal and pushes no input into one, by whichever spelling of the request', async () => {
    const found = await attempts(daemon, 'tty.')
    expect(found).toEqual({
      'tty.push-input': 'EPERM',
      'tty.push-input-high-bits': 'EPERM',
      'tty.open': 'ENOENT',
    })
  })
})

test('at a terminal, a bare program opens it', async () => {
  const { stdout } = await promisify(execFile)('script', ['-qec', `${escapeProbe()} tty.open`, '/dev/null'])
  expect(stdout).toContain('tty.open open')
})

test('it is the filter that refuses the request: without it the stream itself does, being no terminal', async () => {
  const found = await brokenAttempts('tty.push', withoutFilter)
  expect(openOf(found)).toEqual([])
  expect(Object.values(found)).not.toContain('EPERM')
})
