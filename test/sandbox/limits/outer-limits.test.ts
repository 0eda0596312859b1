// One launch's limits from outside, by group where there is one and by watchdog where there is none.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { createCgroups } from '../../../src/sandbox/cgroup/cgroup.ts'
import { chooseEnforcement } from '../../../src/sandbox/limits/enforcement.ts'
import { holdFromOutside } from '../../../src/sandbox/limits/outer-limits.ts'
import type { Limits } from '../../../src/sandbox/spec.ts'
import { newDaemonId, newInstanceId } from '../../../src/lib/ids.ts'
import { firstLine, hostSupport, leftOf, spawnInside } from '../../support/cgroup-host.ts'
import { eventually } from '../../support/eventually.ts'
import { buildProbe } from '../../support/probe.ts'

const limits: Limits = {
  memoryBytes: 2 ** 25,
  pids: 16,
  cpu: 1,
  openFiles: 64,
  fileBytes: 2 ** 20,
  tmpBytes: 2 ** 20,
  enforcement: { memory: 'best-effort', pids: 'best-effort', cpu: 'best-effort', files: 'required' },
}
const none = { memory: null, pids: null, cpu: null, kill: null }
let hog = ''
beforeAll(() => {
  hog = buildProbe('hog')
})

test('without control groups the watchdog tells of one who runs out', async () => {
  const cgroups = { ...hostSupport, level: 'none', bases: none } as const
  await using root = createCgroups(cgroups, newDaemonId())
  const enforced = chooseEnforcement(limits, { cgroups, nprocPerNamespace: true, processTree: true })
  await using outer = holdFromOutside(root, { instance: newInstanceId(), limits }, enforced)
  const child = spawn(hog, ['memory', '64'], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(outer.hasRunOut()).toBe(false)
  outer.watch(child.pid ?? -1, () => child.kill('SIGKILL'))
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  expect(outer.hasRunOut()).toBe(true)
})

test.runIf(hostSupport.bases.memory !== null)(
  'with a control group the kernel’s kill is told of, and disposal ends the rest',
  async () => {
    await using root = createCgroups(hostSupport, newDaemonId())
    const enforced = chooseEnforcement(limits, {
      cgroups: hostSupport,
      nprocPerNamespace: true,
      processTree: true,
    })
    const outer = holdFromOutside(root, { instance: newInstanceId(), limits }, enforced)
    const child = spawnInside(outer.joinFiles, [hog, 'family', '64'])
    const exit = once(child, 'exit')
    let told = false
    outer.watch(child.pid ?? -1, () => (told = true))
    expect(await firstLine(child)).toBe('has 64')
    await eventually(() => told)
    expect(outer.hasRunOut()).toBe(true)
    await outer[Symbol.asyncDispose]()
    expect(await exit).toEqual([null, 'SIGKILL'])
    expect(leftOf(outer.joinFiles.map(dirname))).toEqual([])
    expect(outer.hasRunOut()).toBe(true)
  },
)
