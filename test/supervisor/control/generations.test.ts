// A caller's pin is good for the lists of one daemon, wherever the clock stood when that and others began.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Generations } from '../../../src/supervisor/control/generations.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const refusal = (generations: Generations, since: number, generation: number | null): string | null => {
  try {
    generations.requireSeen('files', since, { tool: 'read', generation })
    return null
  } catch (error) {
    return (error as Error).message
  }
}

test('a tool is called by who saw it as it is, or says nothing of it', () => {
  const generations = new Generations()
  const [first, second, third] = [generations.next(), generations.next(), generations.next()]
  for (const seen of [second, third, null]) expect(refusal(generations, second, seen)).toBeNull()
  expect(refusal(generations, second, first)).toMatch(/read of \S+ is seen as it is since generation/)
  expect(refusal(generations, second, third + 1)).toMatch(/which this daemon never gave/)
  expect(refusal(generations, 0, 1)).toMatch(/which this daemon never gave/)
})

test.each([
  ['in the same second', 0],
  ['once the clock was set back by a moment', -3],
  ['by an hour', -3_600_000],
])('a generation of one daemon is none of another that begins %s', (_what, byMs) => {
  const before = new Generations()
  const given = Array.from({ length: 20 }, () => before.next())
  vi.setSystemTime(Date.now() + byMs)
  const after = new Generations()
  const since = after.next()
  for (let n = 0; n < 20; n += 1) after.next()
  for (const generation of given) {
    expect(refusal(after, since, generation)).toMatch(/which this daemon never gave/)
    expect(refusal(after, 0, generation)).toMatch(/which this daemon never gave/)
  }
})

test('generations go up from one daemon to the next, and are held by a double', () => {
  const before = new Generations()
  vi.setSystemTime(Date.now() + 1000)
  const after = new Generations()
  expect(after.latest).toBeGreaterThan(before.next())
  vi.setSystemTime(new Date('2053-01-01'))
  expect(Number.isSafeInteger(new Generations().next())).toBe(true)
})

test.each(['1970-01-01', '2019-12-31', '2054-02-01', '2100-01-01'])(
  'they are told apart, and are what a caller may name, also by a clock that stands in %s',
  (when) => {
    vi.setSystemTime(new Date(when))
    const generations = new Generations()
    const [first, second] = [generations.next(), generations.next()]
    expect(first).toBeGreaterThanOrEqual(0)
    expect(Number.isSafeInteger(second + 1_000_000)).toBe(true)
    expect(refusal(generations, second, first)).toMatch(/read of \S+ is seen as it is since generation/)
  },
)
