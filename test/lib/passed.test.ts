// A night in which the machine slept has passed, and an hour by which somebody set the clock has not.
import { uptime } from 'node:os'
import { expect, test } from 'vitest'
import { Passed, passedMs } from '../../src/lib/passed.ts'

const hourMs = 3_600_000

function clocks() {
  const at = { steady: 5, wall: 1_700_000_000_000, boot: 900 }
  const passed = new Passed({ steady: () => at.steady, wall: () => at.wall, boot: () => at.boot })
  const began = passed.now()
  return {
    set: (ms: number) => void (at.wall += ms),
    wake: (ms: number) => void ((at.steady += ms), (at.wall += ms), (at.boot += ms)),
    sleep: (ms: number) => void ((at.wall += ms), (at.boot += ms)),
    since: () => passed.now() - began,
  }
}

test('what the machine slept has passed', () => {
  const at = clocks()
  at.wake(2000)
  at.sleep(hourMs)
  expect(at.since()).toBe(hourMs + 2000)
  at.wake(1)
  at.sleep(2 * hourMs)
  expect(at.since()).toBe(3 * hourMs + 2001)
})

test.each([hourMs, -hourMs])(
  'a clock that is set by %i ms changes nothing, before a sleep and after it',
  (ms) => {
    const at = clocks()
    at.set(ms)
    expect(at.since()).toBe(0)
    at.sleep(hourMs)
    expect(at.since()).toBe(hourMs)
    at.set(-3 * ms)
    at.wake(7)
    expect(at.since()).toBe(hourMs + 7)
  },
)

test('this machine’s own goes on with the steady clock', async () => {
  const [before, steady] = [passedMs(), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(Math.abs(passedMs() - before - (performance.now() - steady))).toBeLessThan(20)
  expect(uptime()).toBeGreaterThan(0)
})
