import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { patienceMs } from '../support/patience.ts'

interface Count {
  readonly descriptors: number
  readonly resources: Readonly<Record<string, number>>
}

test('2000 connections one after the other and 256 at once leave no descriptor, socket or timer', async () => {
  const path = fileURLToPath(new URL('apart/many.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [path], {
    timeout: patienceMs,
    maxBuffer: 1 << 22,
  })
  const told = JSON.parse(stdout) as {
    before: Count
    after: Count
    disposed: Count
    opened: number
    closed: number
    most: number
    tooMany: number
  }
  expect(told.after).toEqual(told.before)
  expect(told.disposed.resources).not.toHaveProperty('Timeout')
  expect(told.disposed.resources).not.toHaveProperty('TCPServerWrap')
  expect(told.disposed.descriptors).toBeLessThan(told.before.descriptors)
  expect([told.opened, told.closed]).toEqual([2256, 2256])
  expect(told.most).toBe(256)
  expect(told.tooMany).toBe(1)
})
