// What a host hears while an operator is asked: progress that rises, and stays below whatever its server says later.
import { afterEach, expect, test, vi } from 'vitest'
import { Patience } from '../../../src/supervisor/lanes/patience.ts'

afterEach(() => vi.useRealTimers())

test('a sign of life comes at once and each five seconds, each more than the last and less than nothing', () => {
  vi.useFakeTimers()
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
