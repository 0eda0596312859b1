// What a host is subscribed to ends where policy would not let it subscribe any more: at the server, for the host, and on record.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf } from '../support/witness.ts'

const [first, second] = ['note://first', 'note://second']
const allow = { permission: 'mcp:*:*', action: 'allow' }
const about = (uri: string, action: string) => ({
  permission: 'mcp:*:resources/subscribe',
  action,
  where: { '/uri': uri },
})

const servers = { older: fixture('resources'), shares: fixture('shares', { instance: 'shared' }) }
const config = (rules: readonly object[]): object => configOf(servers, { rules })

async function reload(at: TestDaemon, ...rules: readonly object[]): Promise<void> {
  writeFileSync(at.config, JSON.stringify(config([...rules, allow])), { mode: 0o600 })
  expect(await at.client.call('daemon/reload', {})).toMatchObject({ changed: [] })
}

/** A host of the older era, in a session with the server of that. */
async function older(at: TestDaemon, lineage = 'one') {
  const host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'older' })
  await host.ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'host', version: '1' },
  })
  host.tell('notifications/initialized')
  const call = async (name: string, args: object): Promise<string> =>
    JSON.stringify((await host.ask('tools/call', { name, arguments: args })).result)
  return {
    host,
    says: (method: string, uri: string) =>
      host.ask(`resources/${method}`, { uri, _meta: { 'sallyport/lineage': lineage } }),
    heard: () => call('heard', {}),
    /** Has the server say that it has another template */
    offers: (uri: string) => call('offer', { uri }),
    /** Whether an update of it that the server says reaches the host */
    async hears(uri: string, more: object = {}): Promise<boolean> {
      const before = host.lines.length
      await call('update', { uri, more })
      return host.lines.slice(before).some((line) => line.includes('resources/updated'))
    },
    [Symbol.dispose]: () => host[Symbol.dispose](),
  }
}

/** A host of the later era, in a session that shares its process. */
async function later(at: TestDaemon, lineage = 'one') {
  const host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server: 'shares' })
  const ask = (method: string, params: object) =>
    host.ask(method, { ...params, _meta: { ...speaker, 'sallyport/lineage': lineage } })
  return {
    host,
    listens: (...uris: readonly string[]) =>
      ask('subscriptions/listen', { notifications: { resourceSubscriptions: uris } }),
    call: async (name: string, args: object = {}): Promise<string> =>
      JSON.stringify((await ask('tools/call', { name, arguments: args })).result),
    told: (method: string) => host.lines.filter((line) => line.includes(method)),
    [Symbol.dispose]: () => host[Symbol.dispose](),
  }
}

const endedOf = (at: TestDaemon) => bodiesOf(at.stateDir, 'subscription.ended')
const intentOf = (at: TestDaemon, uri: string) =>
  bodiesOf(at.stateDir, 'call.intent').findLast(
    (body) => body['kind'] === 'method' && JSON.stringify(body).includes(uri),
  )

const isOnRecord = (at: TestDaemon, uri: string, rule: unknown): void =>
  expect(endedOf(at)).toEqual([
    expect.objectContaining({ call: intentOf(at, uri)?.['call'], subject: 'resources/subscribe', rule }),
  ])

test('a reload that denies a subscription of the older era ends it, and no other', async () => {
  await using at = await daemon(config([allow]))
  using one = await older(at)
  for (const uri of [first, second]) expect((await one.says('subscribe', uri)).error).toBeUndefined()
  expect(await one.hears(first)).toBe(true)
  await using watch = await hearing(at.client)
  await reload(at, about(first, 'deny'))
  await eventually(async () => (await one.heard()).includes(`resources/unsubscribe ${first}`))
  expect(await one.hears(first)).toBe(false)
  expect(await one.hears(second)).toBe(true)
  expect(await one.hears(second, { URI: first })).toBe(false) // some read it as news of the first
  expect(await one.heard()).not.toContain(`unsubscribe ${second}`)
  isOnRecord(at, first, expect.stringContaining('rules[0]'))
  const told = (): readonly object[] => watch.events.filter(({ type }) => type === 'subscription/ended')
  await eventually(() => told().length > 0)
  expect(told()).toMatchObject([{ server: 'older', detail: { code: 'ERR_POLICY_DENIED' } }])
  expect((await one.says('subscribe', first)).error?.data.code).toBe('ERR_POLICY_DENIED')
  await reload(at)
  expect((await one.says('subscribe', first)).error).toBeUndefined()
  expect(await one.hears(first)).toBe(true)
})

test('one that was allowed ends where a reload asks about it; one that was said yes to goes on', async () => {
  await using at = await daemon(config([about(second, 'ask'), allow]))
  await using _ = await watching(at.client, ({ id }) => at.client.call('approvals/approve', { id }))
  using one = await older(at)
  for (const uri of [first, second]) expect((await one.says('subscribe', uri)).error).toBeUndefined()
  await reload(at, about('note://*', 'ask'))
  await eventually(async () => (await one.heard()).includes(`resources/unsubscribe ${first}`))
  expect([await one.hears(first), await one.hears(second)]).toEqual([false, true])
})

test('one that began by an approval that stands ends when an operator takes that back, and so does no other', async () => {
  await using at = await daemon(config([about('note://*', 'ask'), allow]))
  const asked: string[] = []
  await using _ = await watching(at.client, ({ id }) => {
    asked.push(id)
    return at.client.call('approvals/approve', { id, scope: 'session' })
  })
  using one = await older(at)
  for (const uri of [first, second]) expect((await one.says('subscribe', uri)).error).toBeUndefined()
  await at.client.call('approvals/deny', { id: asked[0] ?? '', reason: 'enough' })
  await eventually(async () => (await one.heard()).includes(`resources/unsubscribe ${first}`))
  expect([await one.hears(first), await one.hears(second)]).toEqual([false, true])
  isOnRecord(at, first, null)
  expect(endedOf(at)).toMatchObject([{ reason: expect.stringContaining('took back the approval') }])
})

test('one ends where its server has other templates than those that were accepted', async () => {
  await using at = await daemon(config([allow]))
  using one = await older(at)
  expect((await one.says('subscribe', first)).error).toBeUndefined()
  expect(await one.hears(first)).toBe(true)
  await one.offers('note://{name}')
  await eventually(async () => (await one.heard()).includes(`resources/unsubscribe ${first}`))
  expect(await one.hears(first)).toBe(false)
  expect((await one.says('subscribe', first)).error?.data.code).toBe('ERR_DECLARATION_MISMATCH')
  expect(endedOf(at)).toMatchObject([{ code: 'ERR_DECLARATION_MISMATCH', rule: null, hold: null }])
})

test('of what ended in the later era no news reaches the host by another subscription of its own', async () => {
  await using at = await daemon(config([about('note://*', 'ask'), allow]))
  const asked: string[] = []
  await using _ = await watching(at.client, ({ id }) => {
    asked.push(id)
    return at.client.call('approvals/approve', { id, scope: 'session' })
  })
  using one = await later(at)
  const ended = one.listens(first)
  await eventually(() => one.told('acknowledged').length === 1)
  void one.listens(second)
  await eventually(() => one.told('acknowledged').length === 2)
  await at.client.call('approvals/deny', { id: asked[0] ?? '', reason: 'enough' })
  expect((await ended).error).toMatchObject({ data: { code: 'ERR_POLICY_DENIED' } })
  const heard = (await one.call('heard')).replaceAll('\\', '')
  const id = Number(
    /"id":(\d+),"method":"subscriptions\/listen","params":\{[^}]*note:\/\/second/.exec(heard)?.[1],
  )
  const news = (uri: string): string =>
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri, _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
    })
  await one.call('say', { lines: [news(first), news(second)] })
  await eventually(() => one.told(second).length > 0 && one.told('resources/updated').length > 0)
  expect(one.told('resources/updated').filter((line) => line.includes(first))).toEqual([])
})

test('one that the server has not answered ends in that turn, too', async () => {
  await using at = await daemon(config([allow]))
  using one = await older(at)
  void one.says('subscribe', 'note://slow')
  await eventually(async () => (await one.heard()).includes('resources/subscribe note://slow'))
  await reload(at, about('note://slow', 'deny'))
  await eventually(async () => (await one.heard()).includes('resources/unsubscribe note://slow'))
  expect(await one.hears('note://slow')).toBe(false)
  expect(endedOf(at)).toHaveLength(1)
})

test('a hold ends the subscriptions that it covers, and those of no other lineage', async () => {
  await using at = await daemon(config([allow]))
  using one = await older(at)
  using other = await older(at, 'other')
  for (const host of [one, other]) await host.says('subscribe', first)
  await at.client.call('servers/hold', { name: 'brake', lineage: 'one' })
  await eventually(async () => (await one.heard()).includes(`resources/unsubscribe ${first}`))
  expect([await one.hears(first), await other.hears(first)]).toEqual([false, true])
  expect(endedOf(at)).toMatchObject([{ hold: 'brake', lineage: 'one' }])
})

test('where sessions share a process, a request that names what a reload denies ends with the reason', async () => {
  await using at = await daemon(config([allow]))
  using one = await later(at)
  using other = await later(at)
  const listening = one.listens(second, first)
  void other.listens(second)
  await eventually(async () => (await one.call('heard')).split('subscriptions/listen').length === 3)
  await other.call('update', { uri: second })
  await eventually(() => [one, other].every((host) => host.told('resources/updated').length === 1))
  await reload(at, about(first, 'deny'))
  expect((await listening).error).toMatchObject({ data: { code: 'ERR_POLICY_DENIED', retryable: false } })
  const heard = await one.call('heard')
  expect(heard.match(/notifications\/cancelled/g)).toHaveLength(1)
  // Of what the server says for it nothing is for the host any more, of which resource ever.
  const [number] = /\\"requestId\\":(\d+)/.exec(heard.replaceAll('\\\\', '\\'))?.slice(1) ?? []
  const mark = { 'io.modelcontextprotocol/subscriptionId': Number(number) }
  const news = {
    jsonrpc: '2.0',
    method: 'notifications/resources/updated',
    params: { uri: second, _meta: mark },
  }
  await one.call('say', { lines: [JSON.stringify(news)] })
  await one.call('update', { uri: second })
  await eventually(() => other.told('resources/updated').length === 2)
  expect(one.told('resources/updated')).toHaveLength(1)
  isOnRecord(at, first, expect.stringContaining('rules[0]'))
  const outcomes = bodiesOf(at.stateDir, 'call.outcome').filter(({ kind }) => kind === 'method')
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled'])
})
