import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { inGoodTime, orLate, slownessOf, stretched } from '../support/pace.ts'
import { patienceMs } from '../support/patience.ts'

test('a bound is never less than on a machine at rest', async () => {
  expect(await stretched(1000)).toBeGreaterThanOrEqual(1000)
})

test.each([
  ['a fast machine gains nothing', [20, 30], 1],
  ['one of three that was held up says nothing', [4000, 50, 60], 1],
  ['what is slow each time is so many times slower', [800, 500, 600], 10],
  ['no machine is so slow that a hang is let pass', [90_000, 90_000], 20],
  ['nor is one that can start nothing', [Infinity, Infinity], 20],
])('%s', (_, tookMs, times) => {
  expect(slownessOf(tookMs)).toBe(times)
})

test('a bound is told where no process can be started', () => {
  const module = new URL('../support/pace.ts', import.meta.url).href
  const script = `
    import { orLate } from ${JSON.stringify(module)}
    process.execPath = '/nonexistent/node'
    console.log(await orLate(new Promise(() => setInterval(() => {}, 1000)), 5))
    process.exit(0)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: patienceMs,
  })
  expect({ stdout, stderr }).toEqual({ stdout: 'late\n', stderr: '' })
})

test('what never comes is late, and what comes is in time', async () => {
  const never = new Promise<never>(() => undefined)
  expect(await orLate(never, 1)).toBe('late')
  expect(await orLate(Promise.resolve('done'), 60_000)).toBe('done')
  await expect(inGoodTime(() => false, 1)).rejects.toThrow('not true within')
  await expect(orLate(Promise.reject(new Error('its own')), 60_000)).rejects.toThrow('its own')
})
