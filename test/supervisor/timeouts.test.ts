// A server that does not answer a governed request in time: what its host, the server itself and the journal are told.
import { expect, test } from 'vitest'
import type { JournalRecord } from '../../src/journal/record.ts'
import { askable, attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'

const within = (callMs: number) => ({ initializeMs: 10_000, callMs, idleMs: 60_000 })

const initialize = (version: string) => ({
  jsonrpc: '2.0',
  id: 'i',
  method: 'initialize',
  params: { protocolVersion: version, capabilities: askable, clientInfo: { name: 'h', version: '1' } },
})

async function ready(script: string, more: Parameters<typeof serverSettings>[1], era = '2025-11-25') {
  const host = await attach(serverSettings(script, more))
  if (era === '2026-07-28') return host
  host.send(initialize(era))
  await host.answer('i')
  return host
}

const call = (id: number, name: string, args: object = {}, meta: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: meta },
})

const outcomes = (host: HostEnd): readonly JournalRecord['body'][] =>
  host.governed
    .records()
    .filter(({ type }) => type === 'call.outcome')
    .map(({ body }) => body)

/** A request whose bytes tell raw-script.mjs what to say. */
const telling = (id: number, ...replies: string[]): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t","_meta":{"@reply":"${Buffer.from(replies.map((reply) => `${reply}\n`).join('')).toString('base64')}"}}}`
const ok = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`

test.each(['2024-11-05', '2025-11-25', '2026-07-28'])(
  'in %s a call without an answer in time is an error to the host, cancelled at the server, and recorded',
  async (era) => {
    await using host = await ready('slow.mjs', { timeouts: within(150) }, era)
    host.send(call(7, 'wait', { ms: 60_000 }))
    const { error } = await host.answer(7)
    expect(error).toMatchObject({
      message: 'mcp server fixture did not answer wait within timeouts.call_ms (150)',
      data: { code: 'ERR_CALL_TIMEOUT', failure: 'MP-FH-004', retryable: true },
    })
    await eventually(() => host.logs.last(10).lines.includes('cancelled'))
    const [outcome] = await eventually(() => outcomes(host).length > 0 && outcomes(host))
    expect(outcome).toMatchObject({ outcome: 'timeout', subject: 'wait' })
    expect(host.eventsOf('call/timeout')).toMatchObject([{ detail: { failure: 'MP-FH-004' } }])
    expect(host.governed.governance.permits.list()).toEqual([])
  },
)

test('progress does not put the end off', async () => {
  await using host = await ready('slow.mjs', { timeouts: within(300) })
  host.send(call(1, 'wait', { ms: 1000 }, { progressToken: 'p' }))
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_CALL_TIMEOUT' })
  expect(host.lines.filter((line) => line.includes('notifications/progress')).length).toBeGreaterThan(0)
})

test('an answer that comes too late goes nowhere, is counted, and is never taken for another call’s', async () => {
  await using host = await attach(serverSettings('raw-script.mjs', { timeouts: within(200) }))
  host.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}')
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_CALL_TIMEOUT' })
  const answered = host.lines.length
  host.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}')
  const refused = JSON.parse(await eventually(() => host.lines[answered])) as { error: unknown }
  expect(refused.error).toMatchObject({ data: { code: 'ERR_INVALID_REQUEST' } })
  host.send(telling(2, ok(1), ok(2)))
  await host.answer(2)
  expect(host.lines.slice(answered + 1)).toEqual([ok(2)])
  expect(host.eventsOf('session/late-answer')).toMatchObject([{ detail: { id: '1', count: 1 } }])
})

test('other governed requests are bounded, too, and each by its own time', async () => {
  await using host = await attach(serverSettings('raw-script.mjs', { timeouts: within(200) }))
  host.send('{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:1"}}')
  host.send(telling(2, ok(2)))
  await host.answer(2)
  expect((await host.answer(1)).error?.message).toContain('resources/read')
})

test('a subscription is not ended by it', async () => {
  await using host = await attach(serverSettings('raw-script.mjs', { timeouts: within(100) }))
  const wanted = '{"notifications":{"resourceSubscriptions":["x:1"]}}'
  host.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":${wanted}}`)
  host.send('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}')
  host.send('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}')
  await host.answer(2)
  host.send(telling(4, ok(1), ok(4)))
  await host.answer(1)
  expect(host.lines).toContain(ok(1))
})

test('the time in which an operator is asked does not count', async () => {
  const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const
  await using host = await attach(serverSettings('slow.mjs', { timeouts: within(400) }), { rules })
  const { governance } = host.governed
  using _listening = { [Symbol.dispose]: governance.listen() }
  host.send(initialize('2025-11-25'))
  await host.answer('i')
  host.send(call(1, 'wait', { ms: 50 }))
  const [question] = await eventually(
    () => governance.approvals.pending().length > 0 && governance.approvals.pending(),
  )
  await eventually(() => (governance.approvals.pending()[0]?.waitedMs ?? 0) > 500)
  governance.approvals.approve(question?.id ?? '', '0', null)
  expect((await host.answer(1)).error).toBeUndefined()
})

test('the time in which the host itself is asked does not count', async () => {
  const elicitation = { enabled: true, timeoutMs: 10_000, queue: 1 }
  await using host = await ready('asks.mjs', { timeouts: within(300), elicitation })
  host.send(call(1, 'ask', { method: 'elicitation/create' }))
  await eventually(() => host.lines.some((line) => line.includes('elicitation/create')))
  const asked = performance.now()
  await eventually(() => performance.now() - asked > 600)
  host.send({ jsonrpc: '2.0', id: 'ask', result: { action: 'cancel' } })
  expect((await host.answer(1)).result).toMatchObject({ structuredContent: { result: { action: 'cancel' } } })
})

test('the time in which the host does not read what it was answered does not count', async () => {
  const output = { resultBytes: 1_000_000, lineBytes: 1_000_000, stderrBytes: 1000 }
  await using host = await ready('huge-line.mjs', { timeouts: within(8000), output }) // as long as they take on a busy machine
  host.socket.pause()
  const ids = Array.from({ length: 64 }, (_, index) => index + 1)
  host.send(...ids.map((id) => call(id, 'huge', { bytes: 100_000 })))
  await new Promise((resolve) => setTimeout(resolve, 9500))
  host.socket.resume()
  await eventually(() => outcomes(host).length === ids.length)
  expect(outcomes(host).filter((outcome) => !JSON.stringify(outcome).includes('"outcome":"result"'))).toEqual(
    [],
  )
  await eventually(() => host.received.length > ids.length * 100_000)
  expect(host.lines.filter((line) => line.includes('"error"'))).toEqual([])
  expect(host.eventsOf('call/timeout')).toEqual([])
  // From then on it counts again.
  host.send(call(99, 'begin', { bytes: 1 }))
  expect((await host.answer(99)).error?.data).toMatchObject({ code: 'ERR_CALL_TIMEOUT' })
})

test('a host that has said all, and is asked, is waited for no longer', async () => {
  const elicitation = { enabled: true, timeoutMs: 600_000, queue: 1 }
  await using host = await ready('asks.mjs', { timeouts: within(600_000), elicitation })
  host.send(call(1, 'ask', { method: 'elicitation/create' }))
  await eventually(() => host.lines.some((line) => line.includes('elicitation/create')))
  host.socket.end()
  await host.session.ended
  const [outcome] = await eventually(() => outcomes(host).length > 0 && outcomes(host))
  expect(outcome).toMatchObject({ outcome: 'lost' })
})

test.each(['is at work', 'is not up yet'])(
  'a host that has said all is answered by the process of its call, which %s',
  async (when) => {
    await using host = await ready('slow.mjs', { instance: 'call', timeouts: within(20_000) })
    host.send(call(1, 'wait', { ms: 300 }))
    const own = () => host.session.views().find(({ purpose }) => purpose === 'call')
    if (when === 'is at work') await eventually(() => own()?.state === 'ready')
    const said = performance.now()
    host.socket.end()
    expect((await host.answer(1)).result).toMatchObject({ structuredContent: { waited: 300 } })
    await host.session.ended
    expect(performance.now() - said).toBeLessThan(10_000)
    expect(outcomes(host)).toMatchObject([{ outcome: 'result' }])
  },
)
