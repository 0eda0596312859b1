import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Rest } from '../../src/lib/rest.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('who is used again does not rest, and who is not rests once', () => {
  let rests = 0
  const rest = new Rest(1000, () => rests++)
  rest.begin()
  vi.advanceTimersByTime(999)
  rest.end()
  vi.advanceTimersByTime(5000)
  expect(rests).toBe(0)
  rest.begin()
  vi.advanceTimersByTime(900)
  rest.begin()
  vi.advanceTimersByTime(999)
  expect(rests).toBe(0)
  vi.advanceTimersByTime(5000)
  expect(rests).toBe(1)
})

test('0 is never, and a month is not what a timer of Node’s makes of it', () => {
  let rests = 0
  const [never, month] = [new Rest(0, () => rests++), new Rest(2_592_000_000, () => rests++)]
  never.begin()
  month.begin()
  vi.advanceTimersByTime(2_591_999_999)
  expect(rests).toBe(0)
  vi.advanceTimersByTime(1)
  expect(rests).toBe(1)
})
