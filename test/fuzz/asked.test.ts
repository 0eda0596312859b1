// What a run of fuzz is asked is judged before anything is tried, and what it says can be read.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { patienceMs } from '../support/patience.ts'
import { ran } from './native.ts'

const fuzz = fileURLToPath(new URL('fuzz.ts', import.meta.url))

test.each([
  [['--seconds', 'abc'], '--seconds abc: use a number from 1 to 604800'],
  [['--seconds', '0'], '--seconds 0: use a number from 1 to 604800'],
  [['--seconds', '-3'], "Option '--seconds' argument is ambiguous"],
  [['--seconds', '1e99', '--only', 'framing'], '--seconds 1e99: use a number from 1 to 604800'],
  [['--seconds', '2147484', '--only', 'framing'], '--seconds 2147484: use a number from 1 to 604800'],
  [['--foo'], "Unknown option '--foo'"],
  [['--only', 'frame'], '--only frame: use one of answer,'],
])('%j is refused by what is taken, in one line', async (args, said) => {
  const { code, stdout, stderr } = await ran(process.execPath, [fuzz, ...args], patienceMs)
  expect({ code, stdout }).toEqual({ code: 7, stdout: '' })
  expect(stderr).toMatch(/^fuzz: .*\n$/)
  expect(stderr).toContain(said)
})

test('what is said of each parser begins in one column, however long its name is', async () => {
  const args = [fuzz, '--seconds', '2', '--only', 'canonical', '--only', 'intercepted', '--seed', '1']
  const { code, stdout } = await ran(process.execPath, args, patienceMs)
  const columns = stdout.split('\n').flatMap((line) => /^(?:canonical|intercepted) +(?=\d)/.exec(line) ?? [])
  expect(columns.map((it) => it.length)).toEqual([12, 12])
  expect(code).toBe(0)
})
