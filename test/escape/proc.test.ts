// A server learns nothing of the machine from /proc that is not its business, and writes none of its switches.
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { attempts, broken, confined, daemons, openOf } from '../support/escape.ts'
import type { BubblewrapPlan } from '../../src/sandbox/bubblewrap/driver.ts'

interface Reach {
  readonly read: Record<string, string>
  readonly writableSysctls: string[]
  readonly hostname: string
}

const hidden = [
  'cmdline',
  'config.gz',
  'diskstats',
  'interrupts',
  'iomem',
  'kallsyms',
  'kcore',
  'keys',
  'key-users',
  'kmsg',
  'locks',
  'modules',
  'partitions',
  'slabinfo',
  'softirqs',
  'swaps',
  'timer_list',
  'vmstat',
  'zoneinfo',
]
  .map((name) => `/proc/${name}`)
  .filter((path) => existsSync(path))
const wanted = JSON.stringify({ read: hidden })

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('the host’s facts are covered, its switches read-only, its name another', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as Reach
    expect(Object.keys(found.read).length).toBeGreaterThan(10)
    expect(openOf(found.read)).toEqual([])
    expect(found.writableSysctls).toEqual([])
    expect(found.hostname).toBe('sandbox')
  })

  test('core_pattern, which would run a program as root outside, does not open', async () => {
    expect(openOf(await attempts(daemon, 'proc.'))).toEqual([])
  })
})

const withoutMasks = (): Partial<BubblewrapPlan> => ({ covers: [] })

test('without the masks the facts are read', async () => {
  const { read } = JSON.parse(await broken('probe-reach.mjs', [wanted], withoutMasks)) as Reach
  expect(openOf(read)).toEqual(
    expect.arrayContaining(['/proc/cmdline', '/proc/interrupts', '/proc/kallsyms']),
  )
})
