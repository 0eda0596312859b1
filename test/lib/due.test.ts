import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Due } from '../../src/lib/due.ts'

test('what is due is never called early, not by a part of a millisecond either', async () => {
  const early: number[] = []
  const spread = Array.from({ length: 300 }, async (_, n) => {
    await delay(n) // so that they begin at any part of a millisecond
    const ms = 20 + (n % 7)
    const { promise, resolve } = Promise.withResolvers<number>()
    const began = performance.now()
    const due = new Due(ms, () => resolve(performance.now() - began - ms))
    const lateMs = await promise
    due.cancel()
    if (lateMs < 0) early.push(lateMs)
  })
  const keepsAlive = setTimeout(() => undefined, 60_000)
  await Promise.all(spread)
  clearTimeout(keepsAlive)
  expect(early).toEqual([])
})

describe('while clocks are faked', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('it comes once, after all of its time, and not at all where it is called off', () => {
    let calls = 0
    const [due, off] = [new Due(1000, () => calls++), new Due(1000, () => calls++)]
    vi.advanceTimersByTime(999)
    expect(calls).toBe(0)
    off.cancel()
    vi.advanceTimersByTime(5000)
    due.cancel()
    expect(calls).toBe(1)
  })

  test('it never comes before the time that was told, though time passes between two looks at clocks', () => {
    let doneAt = 0
    const [monotonic, wall] = [performance.now.bind(performance), Date.now.bind(Date)]
    const late = (look: () => number) => () => {
      vi.advanceTimersByTime(5)
      return look()
    }
    performance.now = late(monotonic)
    Date.now = late(wall)
    const due = new Due(1000, () => (doneAt = wall()))
    performance.now = monotonic
    Date.now = wall
    const told = due.at.getTime()
    vi.advanceTimersByTime(2000)
    expect(doneAt).toBeGreaterThanOrEqual(told)
  })

  test.each([86_400_000, -86_400_000])(
    'a wall clock that is put %d ms on moves the time that is told of it, and not the moment',
    (jump) => {
      let calls = 0
      const due = new Due(60_000, () => calls++)
      expect(due.at.getTime()).toBe(Date.now() + 60_000)
      vi.advanceTimersByTime(20_000)
      vi.setSystemTime(Date.now() + jump)
      expect(due.at.getTime()).toBe(Date.now() + 40_000)
      vi.advanceTimersByTime(39_999)
      expect(calls).toBe(0)
      vi.advanceTimersByTime(1)
      expect(calls).toBe(1)
    },
  )
})
