// A server has no capability in any set, no group of the daemon's, and no way to either.
import { describe, expect, test } from 'vitest'
import { attempts, broken, confined, daemons, openOf } from '../support/escape.ts'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'

interface Reach {
  readonly capabilities: string[]
  readonly noNewPrivileges: string
  readonly seccomp: string
  readonly uidMap: string[]
  readonly setgroups: string
}

const none = '0'.repeat(16)

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('all five sets are empty, privileges cannot grow, and one ordinary uid of the host is mapped', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', ['{}'])) as Reach
    expect(found.capabilities).toEqual([none, none, none, none, none])
    expect(found.noNewPrivileges).toBe('1')
    expect(found.seccomp).toBe('2')
    expect(found.setgroups).toBe('deny')
    expect(found.uidMap).toHaveLength(3)
    expect(Number(found.uidMap[1])).toBeGreaterThan(0)
    expect(found.uidMap[2]).toBe('1')
  })

  test('a server does not become root', async () => {
    expect(openOf(await attempts(daemon, 'capabilities.'))).toEqual([])
  })
})

/** Takes from init the right to empty the bounding set. */
const withoutSetpcap = ({ arguments: all }: BubblewrapPlan): Partial<BubblewrapPlan> => {
  const place = all.indexOf('CAP_SETPCAP')
  return { arguments: all.filter((_, index) => index !== place && index !== place - 1) }
}

test('a sandbox whose capabilities could not be dropped is refused, not used', async () => {
  await expect(broken('probe-reach.mjs', ['{}'], withoutSetpcap)).rejects.toMatchObject({
    code: 'ERR_SANDBOX_SETUP',
  })
})
