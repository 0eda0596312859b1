// What a host hears while its call waits, for an operator or for its turn: progress that rises, and stays below whatever its server says later.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Patience } from '../../../src/supervisor/lanes/patience.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a sign of life comes at once and each five seconds, each more than the last and less than nothing', () => {
  const lines: string[] = []
  const patience = new Patience('7', { toHost: (line) => void lines.push(line), look: () => undefined })
  patience.asked()
  vi.advanceTimersByTime(10 * 60_000)
  patience.close()
  const told = lines.map((line) => (JSON.parse(line) as { params: { progress: number } }).params)
  expect(told).toHaveLength(121)
  expect(told[0]).toMatchObject({ progressToken: 7 })
  const values = told.map(({ progress }) => progress)
  expect(values).toEqual([...new Set(values)].toSorted((one, other) => one - other))
  expect(values.at(-1)).toBeLessThan(0)
})

const waiting = (token: string | null) => {
  const heard: { readonly progress: number; readonly message: string }[] = []
  const patience = new Patience(token, {
    toHost: (line) => heard.push((JSON.parse(line) as { readonly params: (typeof heard)[0] }).params),
    look: () => undefined,
  })
  return { patience, heard, words: () => heard.splice(0).map(({ message }) => message) }
}

test('a person, then a turn, then neither, each in so many words', () => {
  const { patience, words } = waiting('"t"')
  patience.asked()
  vi.advanceTimersByTime(5000)
  expect(words()).toEqual(["waiting for an operator's approval", "waiting for an operator's approval"])
  patience.queued(true)
  vi.advanceTimersByTime(11_000)
  expect(words()).toEqual(['waiting for its turn at the server', 'waiting for its turn at the server'])
  patience.queued(false)
  vi.advanceTimersByTime(60_000)
  expect(words()).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})

test('each progress is more than the one before, whatever was waited for, and less than nothing', () => {
  const { patience, heard } = waiting('7')
  patience.queued(true)
  vi.advanceTimersByTime(10_000)
  patience.asked()
  vi.advanceTimersByTime(10_000)
  patience.queued(true)
  vi.advanceTimersByTime(10_000)
  const all = heard.map(({ progress }) => progress)
  expect(all.length).toBeGreaterThan(5)
  expect(all).toEqual([...new Set(all)].toSorted((a, b) => a - b))
  expect(all.every((one) => one < 0)).toBe(true)
  patience.close()
  expect(vi.getTimerCount()).toBe(0)
})

test('a host that gave no token costs nothing while its call waits for its turn', () => {
  const { patience } = waiting(null)
  patience.queued(true)
  expect(vi.getTimerCount()).toBe(0)
})
