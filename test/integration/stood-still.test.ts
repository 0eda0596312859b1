// A daemon that stood still, as a machine does that was suspended: what was answered meanwhile is an answer, and none is late.
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { expectAftermath } from '../support/aftermath.ts'
import { attached } from '../support/attached.ts'
import { configOf, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller, type RawReply } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf } from '../support/witness.ts'

let at: Place
let client: Client

const short = { call_ms: 3000, initialize_ms: 60_000 }

beforeAll(async () => {
  const slow = (more: object, args: readonly string[] = []): object =>
    fixture('slow', { args: ['/app/slow.mjs', ...args], timeouts: short, ...more })
  const servers = {
    own: slow({}),
    shared: slow({ instance: 'shared' }, ['stateless']),
    pooled: slow({ instance: 'call' }),
    asked: fixture('echo'),
    person: fixture('asks', { elicitation: { enabled: true, timeout_ms: 2000 } }),
    later: fixture('wants-input', {
      args: ['/app/wants-input.mjs', 'person'],
      elicitation: { enabled: true, timeout_ms: 2000 },
    }),
    begins: fixture('echo', { timeouts: { initialize_ms: 2000 } }),
  }
  const rules = [
    { permission: 'mcp:asked:*', action: 'ask' },
    { permission: 'mcp:*:*', action: 'allow' },
  ]
  at = await place(configOf(servers, { rules, approval: { wait_ms: 2000 } }))
  ;({ client } = await serve(at))
})
afterAll(async () => {
  await client.call('daemon/shutdown', {})
  await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})
afterEach(() => expectAftermath(at, client))

/** Stops the daemon for so long; `meanwhile` is what others do then. */
async function standStill(ms: number, meanwhile: () => unknown = () => undefined): Promise<void> {
  const { pid } = client.hello
  process.kill(pid, 'SIGSTOP')
  try {
    meanwhile()
    await delay(ms)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

const outcomesOf = (server: string): readonly unknown[] =>
  bodiesOf(at.stateDir, 'call.outcome')
    .filter((one) => one['server'] === server)
    .map(({ outcome }) => outcome)

describe('while the daemon stood still for longer than', () => {
  test('call_ms, calls that were answered are answered', async () => {
    await using host = await attached(at, 'own')
    const wait = (server: string, ms: number): Promise<unknown> =>
      client.call('tools/call', { server, tool: 'wait', arguments: { ms } })
    await Promise.all([host.call('wait', { ms: 0 }), wait('own', 0), wait('shared', 0), wait('pooled', 0)])
    const calls = [wait('own', 1000), wait('shared', 1000), wait('pooled', 1000)]
    const answer = host.call('wait', { ms: 1000 })
    await delay(600)
    await standStill(4000)
    expect((await answer).result).toMatchObject({ content: [{ text: '{"waited":1000}' }] })
    for (const ended of await Promise.all(calls)) expect(ended).toMatchObject({ type: 'output' })
    for (const [server, count] of Object.entries({ own: 4, shared: 2, pooled: 2 }))
      await eventually(() => outcomesOf(server).length === count)
    expect(['own', 'shared', 'pooled'].flatMap(outcomesOf)).toEqual(Array(8).fill('result'))
  })

  // Within a launch, behind it, and once it is answered.
  test.each([20, 60, 100, 200, 400])(
    'initialize_ms, %i ms after a server was asked for, it is launched and spoken with',
    async (ms) => {
      using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
      expect((await host.ask('session/attach', { server: 'begins' })).error).toBeUndefined()
      const clientInfo = { name: 'host', version: '1' }
      const answer = host.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
      await delay(ms)
      await standStill(2500)
      expect(await answer).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
    },
  )

  test.each([20, 60, 100, 200, 400])(
    'initialize_ms, %i ms after a call, its server is launched and answers',
    async (ms) => {
      const answer = client.call('tools/call', { server: 'begins', tool: 'echo', arguments: { text: 'x' } })
      await delay(ms)
      await standStill(2500)
      expect(await answer).toMatchObject({ type: 'output' })
      await client.call('servers/stop', { server: 'begins' })
    },
  )

  test('approval.wait_ms, what the operator said counts', async () => {
    await using operator = await watching(client)
    const answer = client.call('tools/call', { server: 'asked', tool: 'echo', arguments: {} })
    const { id } = await operator.next()
    let approved: Promise<unknown> | undefined
    await standStill(2500, () => (approved = client.call('approvals/approve', { id })))
    await approved
    expect(await answer).toMatchObject({ type: 'output' })
  })

  test('elicitation.timeout_ms, what the host answered counts', async () => {
    using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await host.ask('session/attach', { server: 'person' })
    const clientInfo = { name: 'host', version: '1' }
    const capabilities = { elicitation: {} }
    await host.ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
    host.tell('notifications/initialized')
    const question = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
    const ask = { method: 'elicitation/create', question }
    const answer = host.ask('tools/call', { name: 'ask', arguments: ask })
    await eventually(() => host.lines.some((line) => line.includes('elicitation/create')))
    await standStill(2500, () => host.answer('ask', { action: 'accept', content: {} }))
    expect(JSON.stringify((await answer).result)).toContain('accept')
  })

  test('elicitation.timeout_ms, what the host says to a question in a result counts', async () => {
    using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
    await host.ask('session/attach', { server: 'later' })
    const capabilities = { elicitation: {} }
    const _meta = { ...speaker, 'io.modelcontextprotocol/clientCapabilities': capabilities }
    const params = { name: 't', arguments: {}, _meta }
    const asked = await host.ask('tools/call', params)
    expect(asked.result).toMatchObject({ resultType: 'input_required' })
    const inputResponses = { e: { action: 'accept', content: {} } }
    let answer: Promise<RawReply> | undefined
    await standStill(2500, () => {
      answer = host.ask('tools/call', { ...params, inputResponses, requestState: 'state' })
    })
    const { line } = (await answer)?.result ?? {}
    expect(JSON.parse(String(line))).toMatchObject({
      params: { inputResponses: { e: { action: 'accept' } } },
    })
  })
})
