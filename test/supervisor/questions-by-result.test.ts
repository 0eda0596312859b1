// The 2026-07-28 era asks a person by a result: what waits is counted, silence is a no, and nothing is earned before the end.
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'

const asking = (elicitation: Partial<ServerSettings['elicitation']> = {}) =>
  attach(
    serverSettings('asks-person.mjs', {
      args: [fixture('asks-person.mjs'), 'modern'],
      elicitation: { enabled: true, timeoutMs: 60_000, queue: 16, ...elicitation },
    }),
  )

let lastId = 0
async function call(host: HostEnd, more: object = {}) {
  const id = ++lastId
  const params = { name: 'ask', arguments: { fields: ['name'] }, ...more }
  host.send({ jsonrpc: '2.0', id, method: 'tools/call', params })
  return (await host.answer(id)).result as unknown as {
    resultType: string
    requestState: string
    structuredContent?: { action: string; characters: number }
  }
}
const said = { who: { action: 'accept', content: { name: 'Ann' } } }
const isAsked = { resultType: 'input_required' }
const accepted = { structuredContent: { action: 'accept', characters: 3 } }
const declined = { structuredContent: { action: 'decline', characters: 0 } }

test('an answer in time is the person’s own', async () => {
  await using host = await asking()
  const { requestState } = await call(host)
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(accepted)
  expect(host.eventsOf('session/declined')).toEqual([])
})

test('a question that nobody answers in time is declined with a notice, and so is the answer that comes later', async () => {
  await using host = await asking({ timeoutMs: 200 })
  const { requestState } = await call(host)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  expect(host.eventsOf('session/declined')[0]?.detail).toMatchObject({
    method: 'tools/call',
    reason: 'no answer within elicitation.timeout_ms (200)',
  })
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(declined)
  expect(host.eventsOf('session/declined')[1]?.detail['reason']).toBe(
    'the answer came after elicitation.timeout_ms (200)',
  )
  expect(JSON.stringify(host.governed.records())).not.toContain('Ann')
})

test('a server that keeps no state is known by what it was asked', async () => {
  const elicitation = { enabled: true, timeoutMs: 200, queue: 16 }
  await using host = await attach(serverSettings('raw-script.mjs', { elicitation }))
  const question = '"inputRequests":{"who":{"method":"elicitation/create","params":{"message":"m"}}}'
  const told = (id: number, result: string): string =>
    `"_meta":{"@reply":"${Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}\n`).toString('base64')}"}`
  const of = (id: number, rest: string): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t",${rest}}}`
  host.send(of(1, told(1, `{"resultType":"input_required",${question}}`)))
  await host.answer(1)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  host.send(of(2, `"inputResponses":{"who":{"action":"accept","content":{}}},${told(2, '{}')}`))
  await host.answer(2)
  expect(host.eventsOf('session/declined')).toHaveLength(2)
})

test('questions of all results together wait up to the bound of the queue; an answer makes room', async () => {
  await using host = await asking({ queue: 2 })
  const { requestState } = await call(host)
  expect(await call(host)).toMatchObject(isAsked)
  expect(await call(host)).toMatchObject(declined)
  expect(host.eventsOf('session/input-answered')[0]?.detail['reason']).toBe(
    'elicitation.queue (2) questions wait already',
  )
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(accepted)
  expect(await call(host)).toMatchObject(isAsked)
  expect(await call(host)).toMatchObject(declined)
})

test('time makes room, too', async () => {
  await using host = await asking({ queue: 1, timeoutMs: 200 })
  expect(await call(host)).toMatchObject(isAsked)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  expect(await call(host)).toMatchObject(isAsked)
})

test('a tool earns nothing by asking, and once by answering', async () => {
  await using host = await asking()
  const { ledger } = host.governed.governance
  const outcomes = () =>
    host.governed
      .records()
      .filter(({ type }) => type === 'call.outcome')
      .map(({ body }) => (body as { outcome: string }).outcome)
  const { requestState } = await call(host)
  await eventually(() => outcomes().length === 1)
  expect(outcomes()).toEqual(['input-required'])
  expect(ledger.trust('fixture', 'ask').evidence).toBe(0)
  await call(host, { inputResponses: said, requestState })
  await eventually(() => outcomes().length === 2)
  expect(outcomes()).toEqual(['input-required', 'result'])
  expect(ledger.trust('fixture', 'ask').evidence).toBe(1)
})
