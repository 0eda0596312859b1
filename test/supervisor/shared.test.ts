// `instance: shared`: one process for the sessions of one principal, none of which hears what is another's.
import { describe, expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import type { Launch } from '../../src/supervisor/ports.ts'
import { eventually } from '../support/eventually.ts'
import { plainLaunch } from '../support/plain-launch.ts'
import { type Sharer, shares, sharing } from '../support/sharing.ts'
import { speaker } from '../support/speaker.ts'
import { caller } from '../support/supervisor.ts'
import { patienceMs } from '../support/patience.ts'

const progress = 'notifications/progress'
const updated = 'notifications/resources/updated'
const subscription = 'io.modelcontextprotocol/subscriptionId'
const listen = (...uris: readonly string[]) => ({
  _meta: speaker,
  notifications: { resourceSubscriptions: uris },
})

/** Resolves when the server holds a call: what came later is behind it. */
const holds = (host: Sharer, key: string) =>
  eventually(async () =>
    (await host.call(`look ${Math.random()}`, 'heard')).includes(`\\"key\\":\\"${key}\\"`),
  )

interface Heard {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly requestId?: unknown }
}

/** What the server heard of a method, as it heard it. */
const heardOf = async (host: Sharer, method?: string): Promise<readonly Heard[]> =>
  (JSON.parse(await host.call(`heard ${Math.random()}`, 'heard')) as string[])
    .map((line) => JSON.parse(line) as Heard)
    .filter((one) => one.method === method)

test('the sessions and control calls of one principal have one process, and another principal has another', async () => {
  await using all = await sharing()
  const [one, two, other] = [await all.host(), await all.host(), await all.host(caller(2000))]
  const pids = await Promise.all([one, two, other].map((host) => host.call(1, 'pid')))
  expect(pids[0]).toBe(pids[1])
  expect(pids[2]).not.toBe(pids[0])
  const call = { server: 'fixture', tool: 'pid', timeoutMs: null, generation: null, lineage: null }
  const { data } = await all.supervisor.call(
    caller(),
    { ...call, arguments: new RawJson('{}') },
    { signal: AbortSignal.timeout(patienceMs) },
  )
  expect(JSON.stringify(data)).toContain(pids[0])
  expect(all.launches()).toBe(2)
  const [view] = all.supervisor.list(caller())
  expect(view?.instances).toMatchObject([
    { purpose: 'shared', state: 'ready', sessions: 2, principal: '1000' },
  ])
  expect(all.supervisor.list(caller(2000))[0]?.instances).toMatchObject([{ sessions: 1, principal: '2000' }])
})

test('ids of every form come back as they were written, to whoever sent them, and the server sees no two alike', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  one.begin(7, 'hold', { key: 'a' })
  two.begin(7, 'hold', { key: 'b' })
  one.begin('7', 'hold', { key: 'c' })
  await holds(one, 'c')
  await holds(two, 'b')
  const say = (key: string, text: string) => `{"jsonrpc":"2.0","result":{"for":"${text}"},"id":ID:${key}}`
  await two.call('x', 'say', { lines: [say('a', 'one'), say('b', 'two'), say('c', 'three')] })
  expect((await one.answer(7)).result).toEqual({ for: 'one' })
  expect((await two.answer(7)).result).toEqual({ for: 'two' })
  expect((await one.answer('7')).result).toEqual({ for: 'three' })
  const ids = (await heardOf(one, 'tools/call')).map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('an answer comes once, and one to an id that is not open goes nowhere', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  one.begin(1, 'hold', { key: 'a' })
  await holds(one, 'a')
  const twice = '{"jsonrpc":"2.0","id":ID:a,"result":{"n":1}}'
  await two.call(2, 'say', { lines: [twice, twice, '{"jsonrpc":"2.0","id":999999,"result":{}}', twice] })
  await one.call(3, 'pid')
  expect(one.messages.filter(({ id }) => id === 1)).toHaveLength(1)
  expect(two.messages.filter(({ id }) => id === 1 || id === 999_999)).toEqual([])
})

describe('progress', () => {
  test('comes to whoever gave the token, in its own words, while the call is in flight', async () => {
    await using all = await sharing()
    const [one, two] = [await all.host(), await all.host()]
    one.begin(1, 'hold', { key: 'a' }, { progressToken: 'same' })
    two.begin(1, 'hold', { key: 'b' }, { progressToken: 'same' })
    await holds(one, 'a')
    await holds(two, 'b')
    const say = (key: string, n: number) =>
      `{"jsonrpc":"2.0","method":"${progress}","params":{"progress":${n},"progressToken":TOKEN:${key}}}`
    const done = '{"jsonrpc":"2.0","id":ID:a,"result":{}}'
    await two.call(2, 'say', { lines: [say('a', 1), say('b', 2), done, say('a', 3)] })
    await one.call(3, 'pid')
    expect(one.told(progress)).toEqual([{ progress: 1, progressToken: 'same' }])
    expect(two.told(progress)).toEqual([{ progress: 2, progressToken: 'same' }])
  })

  test('for a token that nobody gave, or that stands twice, goes nowhere', async () => {
    await using all = await sharing()
    const [one, two] = [await all.host(), await all.host()]
    one.begin(1, 'hold', { key: 'a' }, { progressToken: 5 })
    two.begin(1, 'hold', { key: 'b' })
    await holds(one, 'a')
    await holds(two, 'b')
    const said = ['5', '"5"', 'null', 'ID:b', 'TOKEN:a,"progressToken":5'].map(
      (token) => `{"jsonrpc":"2.0","method":"${progress}","params":{"progress":1,"progressToken":${token}}}`,
    )
    await two.call(2, 'say', { lines: said })
    await one.call(3, 'pid')
    expect([...one.told(progress), ...two.told(progress)]).toEqual([])
  })

  test('for a token that is too long goes nowhere, and its call is answered', async () => {
    await using all = await sharing()
    const one = await all.host()
    one.begin(1, 'hold', { key: 'a' }, { progressToken: 'x'.repeat(1023) })
    one.begin(2, 'hold', { key: 'b' }, { progressToken: 'y'.repeat(1022) })
    await holds(one, 'b')
    const said = (key: string) => [
      `{"jsonrpc":"2.0","method":"${progress}","params":{"progress":1,"progressToken":TOKEN:${key}}}`,
      `{"jsonrpc":"2.0","id":ID:${key},"result":{"for":"${key}"}}`,
    ]
    await one.call(3, 'say', { lines: [...said('a'), ...said('b')] })
    expect((await one.answer(1)).result).toEqual({ for: 'a' })
    expect((await one.answer(2)).result).toEqual({ for: 'b' })
    expect(one.told(progress)).toEqual([{ progress: 1, progressToken: 'y'.repeat(1022) }])
  })
})

test('a session takes back its own calls, and no call of another', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  one.begin(7, 'hold', { key: 'a' })
  await holds(one, 'a')
  const cancel = (requestId: unknown) => ({ method: 'notifications/cancelled', params: { requestId } })
  const [{ id: wireId } = {}] = (await heardOf(one, 'tools/call')).filter(
    ({ params }) => params?.name === 'hold',
  )
  two.send(cancel(7), cancel(wireId))
  await two.call(8, 'pid')
  expect(await heardOf(two, 'notifications/cancelled')).toEqual([])
  one.send(cancel(7))
  await eventually(async () => (await heardOf(two, 'notifications/cancelled')).length === 1)
  expect(await heardOf(two, 'notifications/cancelled')).toMatchObject([{ params: { requestId: wireId } }])
})

test('a resource is told of to those that listen to it, each under its own id, until they go', async () => {
  await using all = await sharing()
  const [one, two, three] = [await all.host(), await all.host(), await all.host()]
  one.send({ id: 'l', method: 'subscriptions/listen', params: listen('file:///a', 'file:///b') })
  two.send({ id: 4, method: 'subscriptions/listen', params: listen('file:///a') })
  const acknowledged = 'notifications/subscriptions/acknowledged'
  await eventually(() => one.told(acknowledged).length + two.told(acknowledged).length === 2)
  await three.call(1, 'update', { uri: 'file:///a' })
  await three.call(2, 'update', { uri: 'file:///b' })
  await eventually(() => one.told(updated).length === 2 && two.told(updated).length === 1)
  expect(one.told(updated).map(({ _meta }) => _meta)).toEqual([
    { [subscription]: 'l' },
    { [subscription]: 'l' },
  ])
  expect(two.told(updated)).toEqual([{ uri: 'file:///a', _meta: { [subscription]: 4 } }])
  expect(three.told(updated)).toEqual([])

  await one[Symbol.asyncDispose]()
  await eventually(async () => (await heardOf(three, 'notifications/cancelled')).length === 1)
  await three.call(3, 'update', { uri: 'file:///a' })
  await eventually(() => two.told(updated).length === 2)
  await three.call(4, 'close')
  expect((await two.answer(4)).result).toEqual({ resultType: 'complete', _meta: { [subscription]: 4 } })
})

test('that a list has changed is told to all; what is said of nobody is told to nobody', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  await two.call(1, 'pid')
  one.begin(1, 'hold', { key: 'a' }, { 'io.modelcontextprotocol/logLevel': 'info' })
  await holds(one, 'a')
  const log = (data: string) =>
    `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${data}"}}`
  const lines = [
    '{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}',
    `{"jsonrpc":"2.0","method":"${updated}","params":{"uri":"file:///a"}}`,
    '{"jsonrpc":"2.0","id":77,"method":"roots/list"}',
    '{"jsonrpc":"2.0","id":78,"method":"elicitation/create","params":{"message":"?"}}',
    log('one asks'),
  ]
  await two.call(2, 'say', { lines })
  two.begin(3, 'hold', { key: 'b' }, { 'io.modelcontextprotocol/logLevel': 'info' })
  await holds(two, 'b')
  await two.call(4, 'say', { lines: [log('two ask')] })
  for (const host of [one, two]) {
    await host.call(5, 'pid')
    expect(host.told('notifications/prompts/list_changed')).toHaveLength(1)
    expect(host.messages.filter(({ method }) => method === updated || method?.includes('/create'))).toEqual(
      [],
    )
  }
  expect(one.told('notifications/message').map(({ data }) => data)).toEqual(['one asks'])
  expect(two.told('notifications/message')).toEqual([])
  const answered = (await heardOf(one)).filter(({ id }) => id === 77 || id === 78)
  expect(answered).toEqual([])
})

describe('what sets up a connection is refused, with the way', () => {
  test.each([
    ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} }],
    ['logging/setLevel', { level: 'debug' }],
    ['resources/subscribe', { uri: 'file:///a' }],
    ['resources/unsubscribe', { uri: 'file:///a' }],
  ])('%s', async (method, params) => {
    await using all = await sharing()
    const host = await all.host()
    // As a server of the later era alone: it has no such version, and in its own no such method.
    const { error } = await host.ask(1, method, { ...params, _meta: undefined })
    expect(error).toMatchObject({ code: -32022, data: { supported: ['2026-07-28'] } })
    expect(error?.data?.['requested']).toBe(Reflect.get(params, 'protocolVersion'))
    expect(error?.message).toMatch(/instance: session/)
    expect((await host.ask(3, method, params)).error?.code).toBe(-32601)
    expect(all.launches()).toBe(0)
    expect(await host.call(2, 'pid')).toMatch(/^\d+$/)
  })
})

test.each(['legacy', 'later'])(
  'a server that is %s cannot be shared, and is not tried again',
  async (kind) => {
    const args = [...shares().args, kind]
    await using all = await sharing(shares({ args }))
    const host = await all.host()
    const { error } = await host.ask(1, 'tools/list')
    expect(error?.message).toMatch(/does not speak 2026-07-28.*instance: session/)
    await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'failed')
    expect(await host.call(2, 'pid')).toMatch(/ERR_SERVER_UNAVAILABLE.*/)
    expect(all.launches()).toBe(1)
  },
)

test('a crash ends every call in flight once, no session, and the process is started again on its schedule', async () => {
  await using all = await sharing(
    shares({ restart: { scheduleS: [0.4, 60], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 } }),
  )
  const [one, two] = [await all.host(), await all.host()]
  const first = await one.call(1, 'pid')
  one.begin(2, 'hold', { key: 'a' })
  two.send({ id: 3, method: 'subscriptions/listen', params: listen('file:///a') })
  await holds(one, 'a')
  two.begin(4, 'crash')
  const ends = [await one.answer(2), await two.answer(3), await two.answer(4)]
  for (const { error } of ends) {
    expect(error?.data?.['code']).toBe('ERR_SERVER_UNAVAILABLE')
    expect(error?.message).toMatch(/it exited with status 3/)
  }
  const { error } = await one.ask(5, 'tools/list')
  expect(error?.data?.['code']).toBe('ERR_SERVER_UNAVAILABLE')
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'ready')
  const second = await one.call(6, 'pid')
  expect(second).not.toBe(first)
  expect(await two.call(6, 'pid')).toBe(second)
  expect(all.launches()).toBe(2)
  const outcomes = all.governed.records().filter(({ type }) => type === 'call.outcome')
  const lost = outcomes.filter(({ body }) => (body as { outcome: string }).outcome === 'lost')
  expect(lost).toHaveLength(3)
  expect(one.messages.filter(({ id }) => id === 2)).toHaveLength(1)
})

test('the process rests when its last session has gone, and not before', async () => {
  const timeouts = { initializeMs: 10_000, callMs: 30_000, idleMs: 300 }
  await using all = await sharing(shares({ timeouts }))
  const state = () => all.supervisor.list(caller())[0]?.instances[0]?.state
  const [one, two, clock] = [await all.host(), await all.host(), await all.host(caller(2000))]
  const pid = await one.call(1, 'pid')
  await two.call(1, 'pid')
  await clock.call(1, 'pid')
  await one[Symbol.asyncDispose]()
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.sessions === 1)
  // Another's that nobody uses has rested for as long by the time that it is stopped.
  await clock[Symbol.asyncDispose]()
  await eventually(() => all.supervisor.list(caller(2000))[0]?.instances[0]?.state === 'stopped')
  expect(state()).toBe('ready')
  expect(await two.call(2, 'pid')).toBe(pid)
  await two[Symbol.asyncDispose]()
  await eventually(() => state() === 'stopped')
  const three = await all.host()
  expect(await three.call(1, 'pid')).not.toBe(pid)
})

test('a host that closes its end still hears what it asked for', async () => {
  await using all = await sharing()
  const [one, two] = [await all.host(), await all.host()]
  one.begin(1, 'hold', { key: 'a' })
  await holds(one, 'a')
  one.socket.end()
  await two.call(1, 'say', { lines: ['{"jsonrpc":"2.0","id":ID:a,"result":{"late":true}}'] })
  expect((await one.answer(1)).result).toEqual({ late: true })
  await one.closed
  expect(await heardOf(two, 'notifications/cancelled')).toEqual([])
})

test('sessions that a full pipe held up wait for it once, however many they are, and every call is answered', async () => {
  const waits: number[] = []
  let pid = 0
  const launch: Launch = async (...asked) => {
    const process = await plainLaunch(...asked)
    const input = inputOf(process)
    input.on('newListener', (event) => event === 'drain' && waits.push(input.listenerCount('drain')))
    pid = process.initPid
    return process
  }
  await using all = await sharing(shares(), { launch })
  const hosts = await Promise.all(Array.from({ length: 8 }, () => all.host()))
  await Promise.all(hosts.map((host) => host.call('first', 'pid')))
  process.kill(pid, 'SIGSTOP')
  const numbers = Array.from({ length: 64 }, (_, n) => n)
  for (const host of hosts) for (const n of numbers) host.begin(n, 'pid', { long: 'x'.repeat(8192) })
  await eventually(() => waits.length > 0)
  process.kill(pid, 'SIGCONT')
  await Promise.all(hosts.flatMap((host) => numbers.map((n) => host.answer(n))))
  expect(Math.max(...waits)).toBe(0) // of others that waited already
})
