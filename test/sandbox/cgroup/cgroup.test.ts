// Real control groups of this machine: each limit stops what it should, and nothing is left.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createCgroups,
  groupDirectories,
  type CgroupRoot,
  type InstanceCgroup,
} from '../../../src/sandbox/cgroup/cgroup.ts'
import { processesIn, removeDirectory } from '../../../src/sandbox/cgroup/directory.ts'
import type { CgroupSupport } from '../../../src/sandbox/cgroup/level.ts'
import { newDaemonId, newInstanceId } from '../../../src/lib/ids.ts'
import { firstLine, hostKill, hostSupport, leftOf, spawnInside } from '../../support/cgroup-host.ts'
import { eventually } from '../../support/eventually.ts'
import { withoutDescriptors } from '../../support/no-descriptors.ts'
import { buildProbe } from '../../support/probe.ts'

const limits = { memoryBytes: 64 * 2 ** 20, pids: 20, cpu: 0.2 }
let hog = ''
beforeAll(() => {
  hog = buildProbe('hog')
})

/** Without one control: the broken arm. */
const without = (control: 'memory' | 'pids' | 'cpu' | 'kill'): CgroupSupport => ({
  ...hostSupport,
  bases: { ...hostSupport.bases, [control]: null },
})

// Limits need a writable hierarchy: root, or one that was delegated. Elsewhere the last block speaks for the machine.
describe.runIf(hostSupport.level !== 'none')('a group of an instance', () => {
  let root: CgroupRoot
  let group: InstanceCgroup
  let children: ChildProcess[] = []

  const start = (support: CgroupSupport): void => {
    root = createCgroups(support, newDaemonId())
    group = root.forInstance(newInstanceId(), limits)
  }
  const run = (...args: string[]): ChildProcess => {
    const child = spawnInside(group.joinFiles, [hog, ...args])
    children.push(child)
    return child
  }
  const inside = (): readonly number[] => processesIn(dirname(group.joinFiles[0] ?? ''))

  beforeEach(() => start(hostSupport))
  afterEach(async () => {
    await root[Symbol.asyncDispose]()
    expect(leftOf([...root.directories, ...group.joinFiles])).toEqual([])
    await eventually(() => children.every((child) => child.exitCode !== null || child.signalCode !== null))
    for (const { stdout } of children) stdout?.destroy() // of one that nobody read
    children = []
  })

  const anew = async (support: CgroupSupport): Promise<void> => {
    await root[Symbol.asyncDispose]()
    start(support)
  }

  test.each(['memory', 'memfd'])('stops a %s hog at its memory limit, and counts the kill', async (kind) => {
    const child = run(kind, '256')
    const [, signal] = await once(child, 'exit')
    expect(signal).toBe('SIGKILL')
    expect(group.oomKills()).toBeGreaterThan(0)
  })

  test('lets the same hog through without the memory limit', async () => {
    await anew(without('memory'))
    expect(await firstLine(run('memory', '256'))).toBe('has 256')
    expect(group.oomKills()).toBe(0)
  })

  test('tells of a kill deep in the tree, so that the whole tree can be ended', async () => {
    let told = 0
    group.onOom(() => {
      told += 1
      group.kill()
    })
    const parent = run('family', '256')
    const [, signal] = await once(parent, 'exit')
    expect(signal).toBe('SIGKILL')
    await eventually(() => told === 1) // version 2 has ended the tree by itself before
    await eventually(() => inside().length === 0)
    expect(told).toBe(1)
  })

  test('stops a fork bomb at its limit of tasks, beyond the two that are not the server’s', async () => {
    expect(await firstLine(run('fork'))).toBe(`forked ${limits.pids + 2 - 1}`)
  })

  test('lets the same fork bomb grow without the limit of tasks', async () => {
    await anew(without('pids'))
    expect(await firstLine(run('fork'))).toBe('forked 200')
  })

  const cpuBase = hostSupport.bases.cpu
  test.runIf(cpuBase?.version === 1).each([
    [
      'has the share of a group higher up, where that is the smaller, in its own files',
      2000,
      20_000,
      '10000',
    ],
    ['has none in its own files where that share is less than the kernel takes', 1000, 1_000_000, '-1'],
  ])('%s', async (_, quotaUs, periodUs, own) => {
    const above = join(cpuBase?.path ?? '', `above-${process.pid}`)
    mkdirSync(above)
    try {
      writeFileSync(join(above, 'cpu.cfs_period_us'), `${periodUs}`)
      writeFileSync(join(above, 'cpu.cfs_quota_us'), `${quotaUs}`)
      await anew({ ...hostSupport, bases: { ...without('memory').bases, cpu: { version: 1, path: above } } })
      const file = group.joinFiles.find((path) => path.startsWith(`${above}/`)) ?? ''
      expect(readFileSync(join(dirname(file), 'cpu.cfs_quota_us'), 'utf8')).toBe(`${own}\n`) // of 100 000
    } finally {
      await root[Symbol.asyncDispose]()
      rmdirSync(above)
    }
  })

  test('holds a spinning process to its share of a core', async () => {
    const child = run('spin')
    const ticks = (): number => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return Number(fields[11]) + Number(fields[12])
    }
    const started = performance.now()
    const from = ticks()
    await eventually(() => performance.now() - started > 1000)
    const share = ((ticks() - from) * 10) / (performance.now() - started)
    expect(share).toBeLessThan(0.35)
  })

  test.each([
    ['all at once', { ...hostSupport, bases: { ...hostSupport.bases, kill: hostKill } }] as const,
    ['process by process', without('kill')] as const,
  ])('kills a whole tree %s', async (_, support) => {
    await anew(support)
    expect(await firstLine(run('fork'))).toMatch(/^forked /)
    expect(inside().length).toBeGreaterThan(10)
    group.kill()
    await eventually(() => inside().length === 0)
  })

  test('removes its directories even while processes run in them', async () => {
    await firstLine(run('fork'))
    await group.remove()
    expect(leftOf(group.joinFiles.map((file) => dirname(file)))).toEqual([])
    await group.remove()
  })

  test('leaves nothing when the kernel refuses a limit', () => {
    const id = newInstanceId()
    expect(() => root.forInstance(id, { ...limits, pids: -10 })).toThrow(
      expect.objectContaining({
        code: 'ERR_SANDBOX_UNENFORCEABLE',
        message: expect.stringContaining('pids.max'),
      }),
    )
    expect(leftOf(root.directories.map((directory) => join(directory, id)))).toEqual([])
  })

  test('tells of a want of descriptors as of the shortage that it is, and leaves nothing', async () => {
    expect(JSON.parse(await withoutDescriptors('group'))).toMatchObject({
      data: { code: 'ERR_SHORTAGE', retryable: true, errno: 'EMFILE' },
    })
  })

  test('takes a share of a core that is above what its daemon has itself', async () => {
    const { cpu } = hostSupport.bases
    if (cpu?.version !== 1) return
    const outer = createCgroups(
      { ...hostSupport, bases: { memory: null, pids: null, cpu, kill: null } },
      newDaemonId(),
    )
    await using _ = outer
    const narrow = outer.forInstance(newInstanceId(), limits)
    const path = dirname(narrow.joinFiles[0] ?? '')
    const inner = createCgroups(
      { ...outer.support, bases: { ...outer.support.bases, cpu: { version: 1, path } } },
      newDaemonId(),
    )
    await using __ = inner
    expect(() => inner.forInstance(newInstanceId(), { ...limits, cpu: 1 })).not.toThrow()
  })
})

test('a base that can’t be used leaves no folder in the others', () => {
  const broken: CgroupSupport = {
    ...hostSupport,
    bases: { ...hostSupport.bases, cpu: { version: 1, path: '/nonexistent' } },
  }
  const daemon = newDaemonId()
  expect(() => createCgroups(broken, daemon)).toThrow(
    expect.objectContaining({
      code: 'ERR_SANDBOX_UNENFORCEABLE',
      message: expect.stringContaining('/nonexistent'),
    }),
  )
  expect(leftOf(groupDirectories(broken, daemon))).toEqual([])
})

test.runIf(process.getuid?.() === 0 && hostKill?.version === 2).each([
  ['hand limits on', true, [['stranger'], [], ['daemon', 'guard']]],
  ['be killed in one write alone', false, [['daemon', 'guard', 'stranger'], [], []]],
] as const)(
  'of a group that others are in too a daemon moves nobody but itself and what it has started, where it is to %s',
  async (_what, isLimiting, expected) => {
    const path = join(hostKill?.path ?? '', `sallyport-test-${newDaemonId()}`)
    const code = `
      import { spawn } from 'node:child_process'
      import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
      import { createCgroups, groupDirectories } from ${JSON.stringify(new URL('../../../src/sandbox/cgroup/cgroup.ts', import.meta.url).href)}
      mkdirSync('${path}'); writeFileSync('${path}/cgroup.procs', '0')
      writeFileSync('${path}/cgroup.procs', process.argv[1])
      const base = { version: 2, path: '${path}' }
      const bases = { memory: ${isLimiting} ? base : null, pids: null, cpu: null, kill: base }
      const support = { level: 'v2-delegated', bases, cause: null, mend: null }
      const guard = spawn('cat')
      // Where the kernel refuses the limit, as beside version 1 and where a stranger stays, the folders go that nobody is in.
      try { createCgroups(support, 'd-test') } catch {}
      const inside = (directory) => {
        try { return readFileSync(directory + '/cgroup.procs', 'utf8').split('\\n').filter(Boolean).map(Number) } catch { return [] }
      }
      const names = new Map([[process.pid, 'daemon'], [guard.pid, 'guard'], [Number(process.argv[1]), 'stranger']])
      const shown = ['${path}', ...groupDirectories(support, 'd-test')].map((each) => inside(each).map((pid) => names.get(pid)).sort())
      guard.kill()
      console.log(JSON.stringify(shown))`
    const stranger = spawn('sleep', ['60'])
    try {
      const args = ['--input-type=module', '-e', code, String(stranger.pid)]
      expect(JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))).toEqual(expected)
      expect(stranger.exitCode).toBeNull()
    } finally {
      stranger.kill('SIGKILL')
      await removeDirectory(path)
    }
    expect(leftOf([path])).toEqual([])
  },
)

test('a machine without control groups gives groups that hold and own nothing', async () => {
  const none: CgroupSupport = {
    ...hostSupport,
    level: 'none',
    bases: { memory: null, pids: null, cpu: null, kill: null },
  }
  await using root = createCgroups(none, newDaemonId())
  const group = root.forInstance(newInstanceId(), limits)
  expect([root.directories, group.joinFiles, group.oomKills()]).toEqual([[], [], 0])
  group.kill()
  await group.remove()
})
