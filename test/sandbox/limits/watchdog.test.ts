// The watchdog sees memory wherever a process hides it, and counts what processes share once.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { pauseMs, usedMemory, watchMemory } from '../../../src/sandbox/limits/watchdog.ts'
import { firstLine } from '../../support/cgroup-host.ts'
import { eventually } from '../../support/eventually.ts'
import { buildProbe } from '../../support/probe.ts'

const mib = 2 ** 20
let hog = ''
let children: ChildProcess[] = []
beforeAll(() => {
  hog = buildProbe('hog')
})
afterEach(() => {
  for (const { pid } of children) if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  children = []
})

/** Starts a hog in a process group of its own and waits until it has what it wants. */
async function start(kind: string, amountMib: number): Promise<number> {
  const child = spawn(hog, [kind, String(amountMib)], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await firstLine(child)
  return child.pid ?? -1
}

test.each(['memory', 'memfd', 'family', 'thread', 'rest'])('memory of kind %s is seen', async (kind) => {
  const initPid = await start(kind, 64)
  await eventually(() => usedMemory({ initPid, limitBytes: 32 * mib, tmpfs: [] }) > 64 * mib)
})

test('files in scratch file systems are seen', () => {
  const without = usedMemory({ initPid: process.pid, limitBytes: 0, tmpfs: [] })
  // Any mount will do for the sum; the root file system always holds something
  expect(usedMemory({ initPid: process.pid, limitBytes: 0, tmpfs: ['/'] })).toBeGreaterThan(without + mib)
})

test('empty files in scratch file systems are seen, which take kernel memory but no block', async () => {
  const initPid = await start('memory', 1)
  const used = (): number => usedMemory({ initPid, limitBytes: 2 ** 40, tmpfs: ['/dev/shm'] })
  const folder = mkdtempSync('/dev/shm/sallyport-')
  try {
    const before = used()
    for (let n = 0; n < 16_384; n++) writeFileSync(`${folder}/${n}`, '')
    expect(used()).toBeGreaterThan(before + 15 * mib)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('pages that a family shares are counted once', async () => {
  const initPid = await start('share', 64)
  expect(usedMemory({ initPid, limitBytes: 128 * mib, tmpfs: [] })).toBeLessThan(96 * mib)
})

test('one who grows above the limit is told of, once', async () => {
  const initPid = await start('memory', 64)
  const told: number[] = []
  using _ = watchMemory({ initPid, limitBytes: 32 * mib, tmpfs: [], onExceeded: (bytes) => told.push(bytes) })
  await eventually(() => told.length === 1, 2000)
  expect(told[0]).toBeGreaterThan(64 * mib)
})

test('nobody is told of one who stays below, or after disposal', async () => {
  const initPid = await start('memory', 16)
  const told: number[] = []
  {
    using _ = watchMemory({
      initPid,
      limitBytes: 30 * mib,
      tmpfs: [],
      onExceeded: (bytes) => told.push(bytes),
    })
    const started = performance.now()
    await eventually(() => performance.now() - started > 800)
    expect(told).toEqual([])
  }
  using _ = watchMemory({ initPid, limitBytes: 1, tmpfs: [], onExceeded: (bytes) => told.push(bytes) })
  _[Symbol.dispose]()
  const started = performance.now()
  await eventually(() => performance.now() - started > 700)
  expect(told).toEqual([])
})

test.each([
  ['of a hundred processes', 10, 500, 50],
  ['of five hundred', 50, 1000, 200],
  ['of ten thousand', 1000, 20_000, 4000],
])('a look at a sandbox %s, %d ms long, is followed by a pause in keeping', (_what, tookMs, rest, alert) => {
  expect(pauseMs(tookMs, false)).toBe(rest)
  expect(pauseMs(tookMs, true)).toBe(alert)
})
