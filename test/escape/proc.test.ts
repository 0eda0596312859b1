// A server learns nothing of the machine from /proc that is not its business, and writes none of its switches.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { main } from '../support/daemon.ts'
import { attempts, broken, confined, daemons, openOf } from '../support/escape.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'
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

// A host with systemd has two mounts there, which come along with the kernel's settings: what is registered, and a trap that has
// systemd mount it at a touch. An ordinary user can't make such a host.
test.runIf(isRoot)('what a host has mounted among the kernel’s settings is not there', async () => {
  const place = '/proc/sys/fs/binfmt_misc'
  await using at = await tempDir()
  await chmod(at.path, 0o755)
  await writeFile(join(at.path, 'look.sh'), `ls -d ${place} >&2; ls -A ${place} >&2\n`, { mode: 0o644 })
  const host = `mount -t tmpfs none ${place} && touch ${place}/registered && exec "$@" 2>&1`
  const look = [main, 'run', '--mount', `${at.path}:/app`, '--', '/bin/sh', '/app/look.sh']
  const out = execFileSync(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', host, 'sh', process.execPath, ...look],
    { encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: at.path } },
  )
  expect(out).toContain(`${place}\n`)
  expect(out).not.toContain('registered')
})
