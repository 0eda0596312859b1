// A server shares no memory, queue or semaphore with anything outside.
import { rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  attempts,
  bare,
  bareAttempts,
  brokenAttempts,
  confined,
  daemons,
  openOf,
  withoutFilter,
} from '../support/escape.ts'

const shared = '/dev/shm/sallyport-test'
const wanted = JSON.stringify({ read: [shared] })

beforeAll(() => writeFileSync(shared, 'shared', { mode: 0o644 }))
afterAll(() => rmSync(shared))

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server has a /dev/shm of its own and no System V memory', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as {
      read: Record<string, string>
    }
    expect(found.read).toEqual({ [shared]: 'ENOENT' })
    expect(openOf(await attempts(daemon, 'ipc.'))).toEqual([])
  })
})

test('bare, both are shared; without the filter a server has memory of its own namespace', async () => {
  const found = JSON.parse(await bare('probe-reach.mjs', [wanted])) as { read: Record<string, string> }
  expect(found.read).toEqual({ [shared]: 'open' })
  expect(openOf(await bareAttempts('ipc.'))).toEqual(['ipc.shared-memory'])
  expect(openOf(await brokenAttempts('ipc.', withoutFilter))).toEqual(['ipc.shared-memory'])
})
