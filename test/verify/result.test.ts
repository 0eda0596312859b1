// The verdict of many is the worst of them, and nothing but passes makes a pass.
import { expect, test } from 'vitest'
import { overall, type Verdict } from '../../src/verify/result.ts'

const of = (...verdicts: Verdict[]): Verdict => overall(verdicts.map((verdict) => ({ verdict })))

test('an error outweighs a failure, and a failure every pass', () => {
  expect(of('pass', 'pass')).toBe('pass')
  expect(of('pass', 'fail', 'pass')).toBe('fail')
  expect(of('fail', 'error', 'pass')).toBe('error')
  expect(of('pass', 'not-enforced', 'not-applicable')).toBe('not-enforced')
  expect(of('not-enforced', 'fail')).toBe('fail')
  expect(of('pass', 'not-applicable')).toBe('pass')
  expect(of('not-applicable')).toBe('not-applicable')
})

test('of nothing at all there is no pass', () => {
  expect(of()).toBe('error')
})
