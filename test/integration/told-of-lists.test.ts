// A host is told where policy lets it see something else of a list that it has read: of that its server knows nothing.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'

const manual = { acceptance: 'manual' } as const
const servers = {
  tells: fixture('list-changed', manual),
  plain: fixture('list-changed', manual),
  silent: fixture('changes', { ...manual, args: ['/app/changes.mjs', '/tmp/reached'] }),
  modern: fixture('shares', manual),
  shared: fixture('shares', { ...manual, instance: 'shared' }),
}

let at: TestDaemon
beforeAll(async () => {
  at = await daemon(configOf(servers))
})
afterAll(() => at[Symbol.asyncDispose]())

interface Heard {
  readonly lines: readonly string[]
  ask(method: string, params: object): Promise<unknown>
}
const toldOf = ({ lines }: Heard, list: string): readonly string[] =>
  lines.filter((line) => line.includes(`"notifications/${list}/list_changed"`))
const read = async (host: Heard, params: object = {}): Promise<readonly string[]> => {
  const answer = (await host.ask('tools/list', params)) as { result: { tools: { name: string }[] } }
  return answer.result.tools.map(({ name }) => name)
}
const accept = (server: string, tools: string[]) => at.client.call('declarations/accept', { server, tools })
const reload = async (rules: readonly object[]): Promise<unknown> => {
  writeFileSync(at.config, JSON.stringify(configOf(servers, { rules })), { mode: 0o600 })
  return at.client.call('daemon/reload', {})
}

test('by what an operator accepts, once for each time that it has read the list, and not where it has read none', async () => {
  await using reader = await attached(at, 'tells')
  await using other = await attached(at, 'tells')
  expect(await read(reader)).toEqual([])
  await accept('tells', ['echo'])
  await eventually(() => toldOf(reader, 'tools').length === 1)
  await accept('tells', ['add'])
  expect(await read(reader)).toEqual(['echo', 'add'])
  expect(toldOf(reader, 'tools')).toEqual(['{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'])
  await accept('tells', ['poison'])
  await eventually(() => toldOf(reader, 'tools').length === 2)
  await other.ask('ping', {})
  expect(toldOf(other, 'tools')).toEqual([])
})

test('by a reload with other rules, and by none with the same', async () => {
  const all = { permission: 'mcp:*:*', action: 'allow' }
  await accept('tells', ['echo', 'add', 'poison'])
  await using host = await attached(at, 'tells')
  expect(await read(host)).toEqual(['echo', 'add', 'poison'])
  await reload([all])
  await host.ask('ping', {})
  expect(toldOf(host, 'tools')).toEqual([])
  await reload([{ permission: 'mcp:tells:poison', action: 'deny' }, all])
  await eventually(() => toldOf(host, 'tools').length === 1)
  expect(await read(host)).toEqual(['echo', 'add'])
  await reload([all])
  await eventually(() => toldOf(host, 'tools').length === 2)
  expect(await read(host)).toEqual(['echo', 'add', 'poison'])
})

test('a caller of control methods, by a generation since which the tool is there or not', async () => {
  const all = { permission: 'mcp:*:*', action: 'allow' }
  const list = async () => {
    const { tools, generation } = await at.client.call('tools/list', { server: 'plain' })
    return [tools.map(({ tool }) => tool), generation] as const
  }
  const call = async (tool: string, generation: number): Promise<unknown> => {
    const made = at.client.call('tools/call', { server: 'plain', tool, arguments: {}, generation })
    return made.then(
      ({ type }) => type,
      (error: unknown) => Object(error).code,
    )
  }
  await at.client.call('servers/start', { server: 'plain' })
  const [none, g0] = await list()
  expect(none).toEqual([])
  await accept('plain', ['echo'])
  const [one, g1] = await list()
  expect(one).toEqual(['echo'])
  expect(g1).toBeGreaterThan(g0)
  expect(await call('echo', g0)).toBe('ERR_TOOL_NOT_FOUND')
  expect(await call('echo', g1)).toBe('output')
  await accept('plain', ['add'])
  const [both, g2] = await list()
  expect(both).toEqual(['echo', 'add'])
  expect(await call('add', g1)).toBe('ERR_TOOL_NOT_FOUND')
  // What did not change is what it was to whoever saw it.
  expect(await call('echo', g1)).toBe('output')
  await reload([{ permission: 'mcp:plain:echo', action: 'deny' }, all])
  await reload([all])
  expect(await call('echo', g2)).toBe('ERR_TOOL_NOT_FOUND')
  const [again, g3] = await list()
  expect(again).toEqual(['echo', 'add'])
  expect(await call('echo', g3)).toBe('output')
})

test('not where its server does not say that it tells of changes', async () => {
  await using host = await attached(at, 'silent')
  expect(await read(host)).toEqual([])
  await accept('silent', ['echo'])
  expect(await read(host)).toEqual(['echo'])
  expect(toldOf(host, 'tools')).toEqual([])
})

test.each(['modern', 'shared'] as const)(
  'in 2026-07-28 in its own subscription to that, and in no other: %s',
  async (server) => {
    const open = async (notifications: object | null) => {
      const caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
      await caller.ask('session/attach', { server })
      expect(await read(caller, { _meta: speaker })).toEqual([])
      const params = { notifications, _meta: speaker }
      const line = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'subscriptions/listen', params })
      if (notifications !== null) {
        void caller.say(line)
        await eventually(() => caller.lines.some((one) => one.includes('subscriptions/acknowledged')))
      }
      return caller
    }
    using listening = await open({ toolsListChanged: true })
    using elsewhere = await open({ promptsListChanged: true })
    using deaf = await open(null)
    await accept(server, ['pid'])
    await eventually(() => toldOf(listening, 'tools').length === 1)
    expect(JSON.parse(toldOf(listening, 'tools')[0] ?? '')).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 'mine' } },
    })
    for (const host of [listening, elsewhere, deaf])
      expect(await read(host, { _meta: speaker })).toEqual(['pid'])
    for (const host of [elsewhere, deaf]) expect(toldOf(host, 'tools')).toEqual([])
  },
)
