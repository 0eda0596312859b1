// A wall clock that is put to another time while no daemon runs: what was said by the former is not held for longer than it was said for.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openClock } from '../chaos/clock.ts'
import { approved, callPlain as call } from '../support/approved.ts'
import { configOf, endServe, fixture, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const config = configOf(
  { plain: fixture('echo') },
  { rules: [{ permission: 'mcp:*:*', action: 'ask' }], approval: { ttl_ms: 3_600_000 } },
)

test.each([
  ['is kept by a daemon after it', 0, 0, 1],
  ['is kept where half of its time is over', 0, 0.5 / 24, 1],
  ['ends where its time is over', 0, 400, 0],
  ['ends where the clock is put back behind it', 0, -400, 0],
  ['ends where it was given by a clock that was ahead', 400, 0, 0],
])('an approval that stands %s', async (_, days, later, standing) => {
  const at = await place(config)
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  clock.set(days * 86_400_000)
  const first = await serve(at, env)
  await approved(first.client)
  await endServe(first)
  clock.set(later * 86_400_000)
  const { client } = await serve(at, env)
  onTestFinished(() => client[Symbol.asyncDispose]())
  expect((await client.call('approvals/list', {})).standing).toHaveLength(standing)
  if (standing === 0) await expect(call(client)).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  else await call(client)
  expect(await client.call('audit/verify', {})).toMatchObject({ ok: true })
  await client.call('daemon/shutdown', {})
})

test('an approval that stands ends where the clock is put back behind the last record, though not behind it', async () => {
  const at = await place(config)
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  const minute = 60_000
  const first = await serve(at, env)
  await approved(first.client)
  await endServe(first)
  const left: number[] = []
  for (const minutes of [50, 1, 2, 3, 51]) {
    clock.set(minutes * minute)
    const again = await serve(at, env)
    left.push((await again.client.call('approvals/list', {})).standing.length)
    await endServe(again)
  }
  expect(left).toEqual([1, 0, 0, 0, 0])
})

test('a clock that once was a year ahead ends no approval that is given after it was put right', async () => {
  const at = await place(config)
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  clock.set(365 * 86_400_000)
  await endServe(await serve(at, env))
  clock.set(0)
  const second = await serve(at, env)
  await approved(second.client)
  await endServe(second)
  const third = await serve(at, env)
  expect((await third.client.call('approvals/list', {})).standing).toHaveLength(1)
  await endServe(third)
})

test('an approval that is over does not come back with a clock that is put back', async () => {
  const at = await place({ ...config, approval: { ttl_ms: 3000 } })
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  const first = await serve(at, env)
  await approved(first.client)
  await eventually(async () => (await first.client.call('approvals/list', {})).standing.length === 0)
  clock.set(-3_600_000)
  await expect(call(first.client)).rejects.toMatchObject({ code: 'ERR_APPROVAL_UNAVAILABLE' })
  await endServe(first)
  const second = await serve(at, env)
  expect((await second.client.call('approvals/list', {})).standing).toEqual([])
  await endServe(second)
})

test('a clock that is a year ahead as a daemon starts takes away nothing of what journal.keep_days keeps', async () => {
  const at = await place(configOf({ plain: fixture('echo') }, { journal: { keep_days: 30 } }))
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  const journal = join(at.stateDir, 'journal')
  const named = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])
  const segments = () => named(journal).filter((name) => name.endsWith('.jsonl'))
  /** One daemon, from its start to its end: its snapshot is what makes the segments before it dispensable. */
  const live = async (): Promise<void> => {
    const before = segments().length
    const one = await serve(at, env)
    await call(one.client)
    await eventually(() => named(join(journal, 'snapshots')).length >= Math.min(2, before))
    await endServe(one)
  }
  for (let lives = 0; lives < 3; lives++) await live()
  const there = segments()
  expect(there.length).toBeGreaterThanOrEqual(3)
  clock.set(400 * 86_400_000)
  await live()
  clock.set(0)
  const { client } = await serve(at, env)
  onTestFinished(() => client[Symbol.asyncDispose]())
  expect(segments()).toEqual(expect.arrayContaining(there))
  expect(await client.call('audit/verify', {})).toMatchObject({ ok: true, begins: { seq: 0 } })
  await client.call('daemon/shutdown', {})
})

test('a clock that is a day ahead makes no server older', async () => {
  const at = await place(configOf({ plain: fixture('echo') }))
  onTestFinished(() => at[Symbol.asyncDispose]())
  using clock = openClock(at.folder)
  const env = { LD_PRELOAD: clock.library, SALLYPORT_CLOCK: clock.path }
  clock.set(0)
  const { client } = await serve(at, env)
  onTestFinished(() => client[Symbol.asyncDispose]())
  await client.call('servers/start', { server: 'plain' })
  clock.set(2.5 * 86_400_000)
  const { stdout } = await at.run(['ps'], { env })
  expect(stdout).toMatch(/^plain +ready +\S+ +\d+ +\d+[sm] /m)
  await client.call('servers/stop', { server: 'plain' })
  const { servers } = await client.call('servers/list', {})
  expect(servers[0]?.instances).toMatchObject([{ state: 'stopped', up_ms: null }])
  await client.call('daemon/shutdown', {})
})
