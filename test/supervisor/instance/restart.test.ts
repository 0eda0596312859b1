import { expect, test } from 'vitest'
import { RestartSchedule, StormWatch } from '../../../src/supervisor/instance/restart.ts'

const restart = { scheduleS: [1, 2, 5, 15, 60], jitter: 0.2, steadyS: 60, startAttempts: 3, storm: 10 }
const middle = (): number => 0.5
const lost = (readyMs: number | null, retryable = true) => ({ readyMs, retryable })
const delays = (schedule: RestartSchedule, count: number, readyMs: number | null = 10): unknown[] =>
  Array.from({ length: count }, () => schedule.after(lost(readyMs))).map((verdict) =>
    verdict.action === 'retry' ? verdict.delayMs / 1000 : verdict.action,
  )

test('one that was ready comes back on the schedule, then at its last step for ever', () => {
  expect(delays(new RestartSchedule(restart, middle), 8)).toEqual([1, 2, 5, 15, 60, 60, 60, 60])
})

test('what is tried for ever is tried ten times a second at most, whatever the schedule says', () => {
  const at = (scheduleS: readonly number[], jitter = 0) =>
    delays(new RestartSchedule({ ...restart, scheduleS, jitter }, () => 0), 4)
  expect(at([0])).toEqual([0, 0.1, 0.1, 0.1])
  expect(at([0.01, 0.05])).toEqual([0.01, 0.05, 0.1, 0.1])
  expect(at([1], 1)).toEqual([0, 0.1, 0.1, 0.1])
  expect(at([0.01, 2])).toEqual([0.01, 2, 2, 2])
})

test('one that never became ready gets its attempts and no more', () => {
  expect(delays(new RestartSchedule(restart, middle), 3, null)).toEqual([1, 2, 'give-up'])
})

test('a start for which the machine was short of something is none of its attempts', () => {
  const schedule = new RestartSchedule(restart, middle)
  const short = { readyMs: null, retryable: true, isNoTry: true }
  expect([1, 2, 3, 4].map(() => schedule.after(short).action)).toEqual(['retry', 'retry', 'retry', 'retry'])
  expect(delays(schedule, 3, null)).toEqual([60, 60, 'give-up'])
})

test('one that was ready once is not given up for failing starts', () => {
  const schedule = new RestartSchedule(restart, middle)
  schedule.after(lost(10))
  expect(delays(schedule, 6, null)).toEqual([2, 5, 15, 60, 60, 60])
})

test('a steady life starts the schedule anew, a short one does not', () => {
  const schedule = new RestartSchedule(restart, middle)
  expect(delays(schedule, 4)).toEqual([1, 2, 5, 15])
  expect(delays(schedule, 1, 59_999)).toEqual([60])
  expect(delays(schedule, 2, 60_000)).toEqual([1, 1])
})

test('what another try cannot mend is not tried', () => {
  expect(new RestartSchedule(restart, middle).after(lost(null, false))).toEqual({ action: 'give-up' })
})

test('jitter spreads restarts by its share, both ways', () => {
  expect(new RestartSchedule(restart, () => 0).after(lost(1))).toEqual({ action: 'retry', delayMs: 800 })
  expect(new RestartSchedule(restart, () => 1).after(lost(1))).toEqual({ action: 'retry', delayMs: 1200 })
})

test('a reset forgets everything', () => {
  const schedule = new RestartSchedule(restart, middle)
  delays(schedule, 3, null)
  schedule.reset()
  expect(delays(schedule, 3, null)).toEqual([1, 2, 'give-up'])
})

test('a storm is so many ends within the steady time, and not more slowly', () => {
  const quick = new StormWatch(restart)
  expect(Array.from({ length: 10 }, (_, i) => quick.ended(i * 6000))).toEqual([
    ...Array<boolean>(9).fill(false),
    true,
  ])
  const slow = new StormWatch(restart)
  expect(Array.from({ length: 50 }, (_, i) => slow.ended(i * 7000)).includes(true)).toBe(false)
})
