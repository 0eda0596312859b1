// A server stays in the namespaces that it was put in, and makes none.
import { readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'
import {
  attempts,
  bareAttempts,
  brokenAttempts,
  confined,
  daemons,
  openOf,
  withoutCounters,
  withoutFilter,
} from '../support/escape.ts'

const withoutEither = (plan: BubblewrapPlan): Partial<BubblewrapPlan> => ({
  ...withoutFilter(plan),
  ...withoutCounters(plan),
})

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server shares no namespace with the daemon', async () => {
    const { namespaces } = JSON.parse(await confined(daemon, 'probe-reach.mjs', ['{}'])) as {
      namespaces: Record<string, string>
    }
    expect(Object.keys(namespaces)).toHaveLength(7)
    for (const [kind, name] of Object.entries(namespaces))
      expect(name, kind).not.toBe(readlinkSync(`/proc/self/ns/${kind}`))
  })

  test('a server makes and enters no namespace, and cannot raise the counters that forbid it', async () => {
    const found = await attempts(daemon, 'namespaces.')
    expect(Object.keys(found)).toHaveLength(12)
    expect(openOf(found)).toEqual([])
  })
})

test('an ordinary user makes namespaces, and so would a server without the filter and the counters', async () => {
  const user = ['namespaces.unshare-user', 'namespaces.clone-user', 'namespaces.clone3-user']
  expect(openOf(await bareAttempts('namespaces.'))).toEqual(expect.arrayContaining(user))
  expect(openOf(await brokenAttempts('namespaces.', withoutEither))).toEqual(expect.arrayContaining(user))
})

test('the counters hold alone where the filter is missing', async () => {
  expect(openOf(await brokenAttempts('namespaces.', withoutFilter))).toEqual([])
})

test('the filter holds alone where the counters are missing', async () => {
  expect(openOf(await brokenAttempts('namespaces.', withoutCounters))).toEqual([])
})
