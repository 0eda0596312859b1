// A server sees, signals and traces its own processes and nobody else's, PID 1 included.
import { describe, expect, test } from 'vitest'
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

interface Reach {
  readonly pids: number[]
  readonly signal: Record<string, string>
}

const wanted = JSON.stringify({ pids: [process.pid] })

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server sees PID 1 and itself, and the daemon’s pid means nobody to it', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as Reach
    expect(found.pids).toEqual([1, 2])
    expect(found.signal).toEqual({ [process.pid]: 'ESRCH' })
  })

  test('a server traces nothing, and reads neither memory nor descriptors of PID 1', async () => {
    const found = await attempts(daemon, 'processes.')
    expect(Object.keys(found)).toHaveLength(7)
    expect(openOf(found)).toEqual([])
  })
})

test('bare, the daemon is seen and can be signalled', async () => {
  const found = JSON.parse(await bare('probe-reach.mjs', [wanted])) as Reach
  expect(found.pids).toContain(process.pid)
  expect(found.signal).toEqual({ [process.pid]: 'open' })
})

test('an ordinary user traces its children, and so would a server without the filter; PID 1 stays closed', async () => {
  expect(openOf(await bareAttempts('processes.trace-child'))).toEqual(['processes.trace-child'])
  expect(openOf(await brokenAttempts('processes.', withoutFilter))).toEqual(['processes.trace-child'])
})
