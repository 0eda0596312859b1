// Waiting with an end: whoever gave up hears nothing more, and neither does the process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { inTime } from '../../src/client/in-time.ts'
import { eventually } from '../support/eventually.ts'
import { soon, unlessAborted, whenSpent, within } from '../../src/lib/deadline.ts'

const late = (): Error => new Error('late')

test.each([
  ['within', (promise: Promise<unknown>, signal: AbortSignal) => within(promise, 10_000, late, signal)],
  ['unlessAborted', unlessAborted],
])('%s with a signal that was aborted before: what fails later ends nothing', async (_, wait) => {
  const unheard: unknown[] = []
  const hear = (reason: unknown): unknown => unheard.push(reason)
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', hear)
  const { promise, reject } = Promise.withResolvers<never>()
  try {
    await expect(wait(promise, AbortSignal.abort(new Error('given up')))).rejects.toThrow('given up')
    reject(new Error('later'))
    for (let turns = 0; turns < 3; turns++) await turn()
  } finally {
    process.removeListener('unhandledRejection', hear)
    for (const other of others) process.on('unhandledRejection', other)
  }
  expect(unheard).toEqual([])
})

test('within ends with what comes first: the promise, its time, its signal', async () => {
  const never = new Promise<never>(() => undefined)
  const ending = new AbortController()
  expect(await within(Promise.resolve(1), 10_000, late)).toBe(1)
  await expect(within(never, 1, late)).rejects.toThrow('late')
  const waiting = within(never, 10_000, late, ending.signal)
  ending.abort(new Error('given up'))
  await expect(waiting).rejects.toThrow('given up')
})

test.each([
  ['soon', (promise: Promise<unknown>) => soon(promise, 50)],
  ['within', (promise: Promise<unknown>) => within(promise, 50, late)],
  [
    'inTime',
    (promise: Promise<unknown>) =>
      inTime({ ms: 50, late: 'late' }, undefined, ({ signal }) => unlessAborted(promise, signal)),
  ],
])('%s hears what came while the thread stood still', async (_, wait) => {
  await turn() // behind which the timers come, and then the descriptors
  const child = spawn('/bin/echo', ['here'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const waiting = wait(once(child.stdout, 'data').then(String))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  expect(await waiting).toBe('here\n')
})

test('whenSpent is late once the time was spent, and not for what the thread stood still', async () => {
  const began = performance.now()
  let lateAt = 0
  whenSpent(400, () => (lateAt = performance.now()))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
  await delay(100)
  expect(lateAt).toBe(0)
  await eventually(() => lateAt > 0)
  expect(lateAt - began).toBeGreaterThan(600 + (400 * 14) / 16)
  let isLate = false
  const callOff = whenSpent(32, () => (isLate = true))
  await delay(10)
  callOff()
  await delay(100)
  expect(isLate).toBe(false)
})
