// What callers are shown of servers that are down, slow or hostile: nothing that they could not call, and it comes back by itself.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import type { SandboxExit } from '../../src/sandbox/driver.ts'
import type { Launch } from '../../src/supervisor/ports.ts'
import { eventually } from '../support/eventually.ts'
import { fixture, plainLaunch } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller, superviseAll, type Supervised } from '../support/supervisor.ts'
import { tempDir } from '../support/temp-dir.ts'
import { turns } from '../support/turns.ts'
import { patienceMs } from '../support/patience.ts'

const waiting = {
  get signal() {
    return AbortSignal.timeout(patienceMs)
  },
}

const call = ({ supervisor }: Supervised, tool: string, server = 'fixture') =>
  supervisor.call(
    caller(),
    { server, tool, arguments: new RawJson('{}'), timeoutMs: null, generation: null, lineage: null },
    waiting,
  )
const shown = async ({ supervisor }: Supervised) =>
  (await supervisor.tools(caller(), null, waiting)).tools.map(({ name }) => name)
const stateOf = ({ supervisor }: Supervised) => supervisor.list(caller())[0]?.instances[0]?.state
const crashing = ['fixture_crash', 'fixture_abort']

test('a server that was lost lists nothing while it waits, its call fails by that name, and its tools are back with it', async () => {
  const restart = { scheduleS: [3], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  await using all = await superviseAll([serverSettings('crash-on-call.mjs', { restart })])
  await all.supervisor.start(caller(), 'fixture', waiting)
  expect(await shown(all)).toEqual(crashing)
  const { generation } = await all.supervisor.tools(caller(), null, waiting)
  await expect(call(all, 'crash')).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  await eventually(() => stateOf(all) === 'backoff')
  expect(await shown(all)).toEqual([])
  await expect(call(all, 'crash')).rejects.toMatchObject({
    message: expect.stringContaining('mcp server fixture is unavailable') as string,
  })
  await eventually(() => stateOf(all) === 'ready') // nobody asked for it
  expect(await shown(all)).toEqual(crashing)
  expect((await all.supervisor.tools(caller(), null, waiting)).generation).toBeGreaterThan(generation)
})

test('a tool under a name that nobody can accept is not shown, and nothing is held against its server', async () => {
  await using dir = await tempDir()
  const record = join(dir.path, 'record')
  await writeFile(`${record}.silent`, JSON.stringify({ unknown: "json:1},{'name':'two words'" }))
  const args = [fixture('changes.mjs'), record]
  await using all = await superviseAll([serverSettings('changes.mjs', { args })])
  await all.supervisor.start(caller(), 'fixture', waiting)
  for (const _ of [1, 2]) expect(await shown(all)).toEqual(['fixture_change', 'fixture_echo'])
  expect(await call(all, 'echo')).toMatchObject({ type: 'output' })
})

test('a server that was given up lists nothing until it is started by name', async () => {
  const restart = { scheduleS: [60], jitter: 0, steadyS: 60, startAttempts: 1, storm: 10 }
  await using all = await superviseAll([serverSettings('crash-at-start.mjs', { restart })])
  await all.supervisor.start(caller(), 'fixture', waiting).catch(() => undefined)
  await eventually(() => stateOf(all) === 'failed')
  expect(await shown(all)).toEqual([])
  expect(all.supervisor.list(caller())[0]?.state).toBe('failed')
})

test('a quarantined server lists nothing, and lists its tools again once it was released and started', async () => {
  await using all = await superviseAll([serverSettings('crash-on-call.mjs')])
  await all.supervisor.start(caller(), 'fixture', waiting)
  expect(await shown(all)).toEqual(crashing)
  await all.supervisor.quarantine('fixture', 'a test')
  expect(await shown(all)).toEqual([])
  expect(await all.supervisor.release('fixture', 'looked at')).toBe(true)
  expect(await shown(all)).toEqual([])
  await all.supervisor.start(caller(), 'fixture', waiting)
  expect(await shown(all)).toEqual(crashing)
})

test('where one process of a quarantined server is not proven gone, those that are stand as quarantined all the same', async () => {
  const proof = Promise.withResolvers<SandboxExit>()
  let launches = 0
  const launch: Launch = async (...asked) => {
    const launched = await plainLaunch(...asked)
    return ++launches === 1 ? { ...launched, ended: proof.promise } : launched
  }
  await using all = await superviseAll([serverSettings('echo.mjs', { stop: { eofMs: 1, termMs: 1 } })], {
    launch,
  })
  const states = (): readonly unknown[] =>
    all.supervisor.list(caller(0, 'operator'))[0]?.instances.map(({ state }) => state) ?? []
  await all.supervisor.start(caller(1000), 'fixture', waiting)
  await all.supervisor.start(caller(1001), 'fixture', waiting)
  await expect(all.supervisor.quarantine('fixture', 'a test')).rejects.toMatchObject({
    code: expect.any(String) as string,
  })
  expect(states()[1]).toBe('quarantined')
  proof.resolve({ code: null, signal: 9, reason: 'killed' })
  await eventually(() => states().every((state) => state === 'quarantined'))
})

test('a server that never answers initialize holds up no other, though only two start at once', async () => {
  const eager = (name: string, script: string) =>
    serverSettings(script, {
      name,
      start: 'eager',
      timeouts: { initializeMs: 15_000, callMs: 5000, idleMs: 0 },
    })
  const names = ['never', 'a', 'b', 'c']
  await using all = await superviseAll(
    names.map((name) => eager(name, name === 'never' ? 'never-initialize.mjs' : 'echo.mjs')),
    { concurrency: 2 },
  )
  const calledOff = new AbortController()
  const started = all.supervisor.startEager(caller(), names, { signal: calledOff.signal })
  const states = () => all.supervisor.list(caller()).map(({ state }) => state)
  await eventually(() => states().join() === 'pending,connected,connected,connected')
  calledOff.abort()
  await started
})

test('the names that two tools would have are told of as an event, and neither is listed', async () => {
  const named = (name: string, tool: string) =>
    serverSettings('collides.mjs', { name, args: [fixture('collides.mjs'), tool] })
  await using all = await superviseAll([named('a', 'b_c'), named('a_b', 'c')])
  for (const server of ['a', 'a_b']) await all.supervisor.start(caller(), server, waiting)
  expect(await shown(all)).not.toContain('a_b_c')
  expect(all.events.filter(({ type }) => type === 'tools/collision')).toMatchObject([
    { principal: '1000', detail: { name: 'a_b_c' } },
  ])
})

test('descriptions are as long as the settings say', async () => {
  const words = { naming: '<server>_<tool>', searchThreshold: 20, searchMatches: 10 } as const
  const settings = { tools: { ...words, descriptionList: 12, descriptionFull: 30, perServer: 100 } }
  const args = [fixture('many-tools.mjs'), '3']
  await using all = await superviseAll([serverSettings('many-tools.mjs', { args })], { settings })
  await all.supervisor.start(caller(), 'fixture', waiting)
  for (const [length, limit] of [
    ['list', 12],
    ['full', 30],
  ] as const) {
    const { tools } = await all.supervisor.tools(caller(), 'fixture', { ...waiting, length })
    const gauge = tools.find(({ tool }) => tool === 'gauge_2')?.description ?? ''
    expect([gauge.length, gauge.endsWith('…')], length).toEqual([limit, true])
  }
})

test('what a server is, and what it lists, is described without a start', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  expect(await shown(all)).toEqual([])
  expect(all.supervisor.get(caller(), 'fixture').state).toBe('pending')
  expect((await all.supervisor.tools(caller(), 'fixture', { ...waiting, length: 'full' })).tools).toEqual([])
  expect(all.launches()).toBe(0)
})

test('that a tool has broken its word is an event, and it loses its trust and its permits at once', async () => {
  await using all = await superviseAll([serverSettings('rug-pull.mjs', { surface: 'dynamic' })])
  const { ledger, permits } = all.governed.governance
  await call(all, 'echo')
  await eventually(() => ledger.trust('fixture', 'echo').evidence === 1)
  const held = call(all, 'wait').catch((error: unknown) => error)
  await eventually(() => all.governed.records().some(({ body }) => Object(body).subject === 'wait'))
  await call(all, 'poison')
  await eventually(() => all.events.some(({ type }) => type === 'trust/violated'))
  expect(all.events.filter(({ type }) => type === 'trust/violated')).toMatchObject([
    { server: 'fixture', detail: { tool: 'echo', failure: 'MP-FH-003' } },
  ])
  expect(ledger.trust('fixture', 'echo')).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1 })
  expect(permits.list().filter(({ identity }) => identity.includes('/echo@'))).toEqual([])
  await all.supervisor.stop(caller(), 'fixture')
  await held
})

test('others have their turns while many tools are cleaned that were not shown before', async () => {
  const args = [fixture('many-tools.mjs'), '100']
  const names = ['one', 'two', 'three', 'four']
  await using all = await superviseAll(names.map((name) => serverSettings('many-tools.mjs', { args, name })))
  for (const name of names) await all.supervisor.start(caller(), name, waiting)
  const seen = turns()
  expect(await shown(all)).toHaveLength(400)
  seen.stop()
  expect(seen.count()).toBeGreaterThan(0)
})
