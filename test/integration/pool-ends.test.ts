// Sandboxes that wait for calls: what ends them, and what follows one that ends by itself.
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { configOf, daemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { descendantsOf } from '../support/leaks.ts'
import { poolOf, run, runs, waitingInits, waits, write } from '../support/pool.ts'

const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

describe('nothing waits', () => {
  test('for a server that is stopped, held, quarantined or removed, and others go on waiting', async () => {
    await using at = await daemon(configOf({ runs: runs(), other: runs() }))
    const start = async (): Promise<void> => {
      await at.client.call('servers/start', { server: 'runs' })
      await waits(at, 2)
    }
    await at.client.call('servers/start', { server: 'other' })
    await waits(at, 2, 'other')
    const others = waitingInits(at)
    const only = async (what: string): Promise<void> => {
      expect([what, await poolOf(at).catch(() => ({ waiting: 0 }))]).toMatchObject([what, { waiting: 0 }])
      expect([what, waitingInits(at)]).toEqual([what, others])
    }
    await start()
    await at.client.call('servers/stop', { server: 'runs' })
    await only('stopped')
    await start()
    await at.client.call('servers/hold', { server: 'runs' })
    await only('held')
    await at.client.call('servers/release', { name: 'runs' })
    await at.client.call('servers/stop', { server: 'runs' })
    await start()
    await at.client.call('servers/quarantine', { server: 'runs' })
    await only('quarantined')
    await at.client.call('servers/release', { name: 'runs' })
    await start()
    await write(at, configOf({ other: runs() }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      removed: ['runs'],
      unchanged: ['other'],
    })
    await only('removed')
  })

  test('of the settings of before, once a reload changed them; nobody else’s is built again', async () => {
    await using at = await daemon(configOf({ runs: runs(), other: runs() }))
    for (const server of ['runs', 'other']) {
      await at.client.call('servers/start', { server })
      await waits(at, 2, server)
    }
    const before = waitingInits(at)
    await write(at, configOf({ runs: runs({ env: { WORD: 'new' } }), other: runs() }))
    expect(await at.client.call('daemon/reload', {})).toMatchObject({
      changed: ['runs'],
      unchanged: ['other'],
    })
    expect(waitingInits(at)).toHaveLength(2)
    expect(before).toEqual(expect.arrayContaining([...waitingInits(at)]))
    expect(await run(at, 'echo $WORD')).toBe('new\n')
    await run(at, 'true', 'other')
    expect(await poolOf(at, 'other')).toMatchObject({ drawn: 1, missed: 0 })
  })

  test('longer than idle_ms after the last call, or than age_ms before another takes its place', async () => {
    const resting = runs({ timeouts: { idle_ms: 2000 }, pool: { size: 1 } })
    await using at = await daemon(configOf({ resting, aging: runs({ pool: { size: 1, age_ms: 1000 } }) }))
    await at.client.call('servers/start', { server: 'aging' })
    await waits(at, 1, 'aging')
    const [first] = waitingInits(at)
    await run(at, 'true', 'resting')
    await waits(at, 1, 'resting')
    await waits(at, 0, 'resting')
    await eventually(() => {
      const [now, ...more] = waitingInits(at)
      return now !== undefined && now !== first && more.length === 0
    })
    expect(await poolOf(at, 'aging')).toMatchObject({ lost: 0, drawn: 0 })
    await run(at, 'true', 'resting')
  })

  test('after the daemon was killed', async () => {
    await using at = await daemon(configOf({ runs: runs() }))
    await at.client.call('servers/start', { server: 'runs' })
    await waits(at, 2)
    const below = descendantsOf(at.process.pid ?? 0)
    expect(waitingInits(at)).toHaveLength(2)
    at.process.kill('SIGKILL')
    await once(at.process, 'exit')
    await eventually(() => !below.some(({ pid }) => existsSync(`/proc/${pid}`)))
  })
})

test('one that is killed while it waits is counted, told of, and followed by another on the schedule, not at once', async () => {
  const restart = { schedule_s: [2, 60], jitter: 0 }
  await using at = await daemon(configOf({ runs: runs({ pool: { size: 1 }, restart }) }))
  await at.client.call('servers/start', { server: 'runs' })
  await waits(at, 1)
  const [init] = waitingInits(at)
  process.kill(init ?? 0, 'SIGKILL')
  const lost = await eventually(async () => {
    const pool = await poolOf(at)
    return pool.lost === 1 && pool
  })
  expect(lost).toMatchObject({ waiting: 0, reason: expect.stringMatching(/ended/) as string })
  expect(await run(at, 'echo served all the same')).toBe('served all the same\n')
  await waits(at, 1)
  process.kill(waitingInits(at)[0] ?? 0, 'SIGKILL')
  await eventually(async () => (await poolOf(at)).lost === 2)
  expect(await run(at, 'true')).toBe('')
  expect(await poolOf(at)).toMatchObject({ waiting: 0, drawn: 0, missed: 2, lost: 2 })
  expect(await at.client.call('servers/get', { server: 'runs' })).toMatchObject({ state: 'connected' })
})

test.each([
  ['PID 1', (init: number) => init],
  ['bubblewrap', (init: number) => parentOf(init)],
])(
  'one whose %s is killed as a call takes it costs the call nothing: the call has another',
  async (_, of) => {
    await using at = await daemon(configOf({ runs: runs() }))
    await at.client.call('servers/start', { server: 'runs' })
    await waits(at, 2)
    const inits = await eventually(() => {
      const found = waitingInits(at)
      return found.length === 2 && found
    })
    at.process.kill('SIGSTOP') // until all is there for it to see at once
    const killed = inits.map(of)
    for (const pid of killed) process.kill(pid, 'SIGKILL')
    const isLeft = (pid: number): boolean => existsSync(`/proc/${pid}/root/proc`)
    await eventually(() => !killed.some(isLeft))
    const made = run(at, 'echo ran')
    at.process.kill('SIGCONT')
    expect(await made).toBe('ran\n')
    expect(await poolOf(at)).toMatchObject({ drawn: 0, missed: 1 })
  },
)

test('one that somebody stopped costs its call nothing: the call has another, and that one goes', async () => {
  await using at = await daemon(configOf({ runs: runs({ pool: { size: 1 } }) }))
  await at.client.call('servers/start', { server: 'runs' })
  await waits(at, 1)
  await using told = await hearing(at.client)
  const [init = 0] = waitingInits(at)
  process.kill(init, 'SIGSTOP')
  await eventually(() => /^State:\s+T/m.test(readFileSync(`/proc/${init}/status`, 'utf8')))
  expect(await run(at, 'echo ran')).toBe('ran\n')
  const lost = await eventually(() => told.events.find(({ type }) => type === 'pool/lost'))
  expect(lost.detail['reason']).toBe(
    'a sandbox that waited for a call stood still, stopped by a signal or paused, when one took it',
  )
  await eventually(() => !existsSync(`/proc/${init}`))
})
