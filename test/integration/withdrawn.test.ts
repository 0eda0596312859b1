// Calls that wait for an operator while what they wait for goes away: the caller hears what happened, and nobody is asked any more.
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { CallId } from '../../src/lib/ids.ts'
import { createTransport } from '../../src/client/transport.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const servers = {
  ends: fixture('crash-on-call'),
  stops: fixture('echo'),
  halts: fixture('echo'),
  back: fixture('echo'),
}
const rules = [
  { permission: 'mcp:*:crash', action: 'allow' },
  { permission: 'mcp:*:*', action: 'ask' },
]

let at: TestDaemon
let operator: Client
let host: Client
let watcher: Client
beforeAll(async () => {
  at = await daemon(configOf(servers, { rules, approval: { wait_ms: 120_000 } }))
  operator = await at.connect('operator')
  host = await at.connect('host')
  watcher = await at.connect('operator')
  await watcher.call('approvals/subscribe', {})
})
afterAll(async () => {
  for (const client of [operator, host, watcher]) await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

const call = (server: string, tool: string) =>
  host.call('tools/call', { server, tool, arguments: {} }).catch((error: unknown) => error)
const pending = async () => (await operator.call('approvals/list', {})).pending
const asked = () => eventually(async () => (await pending()).length > 0)

test.each([
  ['ends', 'abort', () => call('ends', 'crash')],
  ['stops', 'echo', () => operator.call('servers/stop', { server: 'stops' })],
  ['halts', 'echo', () => operator.call('servers/quarantine', { server: 'halts' })],
])('a call of a server that %s is refused as one that is not there', async (server, tool, end) => {
  const ended = call(server, tool)
  await asked()
  await end()
  expect(await ended).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  expect(await pending()).toEqual([])
})

test('a session’s call of a server that ends is refused for that, and not as one that its host took back', async () => {
  const mcp = new McpClient({ name: 'host', version: '1' })
  await mcp.connect(createTransport({ server: 'ends', at: { runtimeDir: at.runtimeDir } }))
  const ended = mcp.callTool({ name: 'abort', arguments: {} }).catch((error: unknown) => error)
  await asked()
  await mcp.callTool({ name: 'crash', arguments: {} }).catch(() => undefined)
  expect(await ended).toMatchObject({ data: { code: 'ERR_SERVER_UNAVAILABLE' } })
  await mcp.close()
})

test('a call that its caller takes back was cancelled, and denied by nobody', async () => {
  const ended = call('back', 'echo')
  await asked()
  const stop = new AbortController()
  for await (const { type, server, detail } of host.events({ since: 0, signal: stop.signal }))
    if (type === 'call/started' && server === 'back') {
      await host.call('calls/cancel', { call_id: detail['call'] as CallId, reason: 'not any more' })
      break
    }
  expect(await ended).toMatchObject({
    code: 'ERR_CALL_CANCELLED',
    message: expect.stringContaining('not any more') as string,
  })
  expect(await pending()).toEqual([])
})
