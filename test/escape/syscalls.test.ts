// A server reaches no system call beyond the filter, by whichever numbers it knows them.
import { describe, expect, test } from 'vitest'
import { attempts, bareAttempts, brokenAttempts, daemons, openOf, withoutFilter } from '../support/escape.ts'

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server can use none of the calls that open the kernel', async () => {
    const found = await attempts(daemon, 'syscalls.')
    expect(Object.keys(found).length).toBeGreaterThanOrEqual(9)
    expect(openOf(found)).toEqual([])
  })

  test.runIf(process.arch === 'x64')(
    'a server that uses another architecture’s numbers is killed',
    async () => {
      const found = await attempts(daemon, 'syscalls.foreign')
      expect(found).toEqual({
        'syscalls.foreign-architecture': 'killed',
        'syscalls.foreign-numbers': 'killed',
      })
    },
  )
})

test('the same calls are open to an ordinary user, and in the sandbox without its filter', async () => {
  // Which of them a machine offers depends on its kernel and switches; personality is open on all.
  for (const found of [await bareAttempts('syscalls.'), await brokenAttempts('syscalls.', withoutFilter)]) {
    expect(openOf(found)).toContain('syscalls.personality')
    expect(openOf(found).length).toBeGreaterThanOrEqual(3)
  }
})
