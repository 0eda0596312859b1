// A process of one call that asks a person: by its server's settings and no other way, as in a session's own process.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askableMeta } from '../support/attach.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { bodiesOf } from '../support/witness.ts'

const opensAddresses = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }

const asks = (more: object = {}): object =>
  fixture('asks-person', { args: ['/app/asks-person.mjs', 'modern'], instance: 'call', ...more })

test.each([
  ['that is off', {}, 'ERR_METHOD_REFUSED'],
  [
    'of a sandboxed server',
    { trust: 'sandboxed', elicitation: { enabled: true }, tools: { allow: ['*'] } },
    'ERR_METHOD_REFUSED',
  ],
  ['that is on', { elicitation: { enabled: true } }, undefined],
])('a question %s', async (_what, more, code) => {
  await using at = await daemon(configOf({ asks: asks(more) }))
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await session.ask('session/attach', { server: 'asks' })
  const { result, error } = await session.ask('tools/call', {
    name: 'ask',
    arguments: { fields: ['password'] },
    _meta: askableMeta,
  })
  expect(error?.data.code).toBe(code)
  expect(result?.['resultType']).toBe(code === undefined ? 'input_required' : undefined)
  expect(session.lines.some((line) => line.includes('password'))).toBe(code === undefined)
  const address = 'https://example.com/'
  const bare = await session.ask('tools/call', { name: 'ask', arguments: { address } })
  expect(bare.error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
  expect(session.lines.some((line) => line.includes(address))).toBe(false)
  const sent = await session.ask('tools/call', { name: 'ask', arguments: { address }, _meta: opensAddresses })
  expect(sent.error).toMatchObject(code === undefined ? { code: -32042 } : { data: { code } })
  expect(session.lines.some((line) => line.includes(address))).toBe(code === undefined)
  // Whatever the host is told, the record says what was answered.
  await at.client.call('audit/query', { limit: 1 })
  expect(bodiesOf(at.stateDir, 'call.outcome')).toMatchObject([
    { outcome: 'input-required', response: expect.stringContaining('password') },
    { outcome: 'error', response: expect.stringContaining(address) },
    { outcome: 'error', response: expect.stringContaining(address) },
  ])
  expect(JSON.stringify(bodiesOf(at.stateDir, 'call.outcome'))).not.toContain('the state of before')
})

test('a question of such a process has its time and its place in the queue, and is answered by the next one', async () => {
  const elicitation = { enabled: true, timeout_ms: 3000, queue: 1 }
  await using at = await daemon(configOf({ asks: asks({ elicitation }) }))
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await using heard = await hearing(at.client)
  const told = (type: string, what: string): boolean =>
    heard.events.some((event) => event.type === type && JSON.stringify(event.detail).includes(what))
  await session.ask('session/attach', { server: 'asks' })
  const ask = async (more: object = {}, fields = ['name']) =>
    session.ask('tools/call', { name: 'ask', arguments: { fields }, _meta: askableMeta, ...more })
  const inputResponses = { who: { action: 'accept', content: { name: 'Ann' } } }

  const requestState = (await ask({}, ['password'])).result?.['requestState']
  await eventually(() => told('session/sensitive-question', '"password"'))
  expect((await ask()).error?.data.code).toBe('ERR_METHOD_REFUSED') // nobody answers in the host's stead
  await eventually(() => told('session/declined', 'no answer within elicitation.timeout_ms'))
  const late = await ask({ inputResponses, requestState })
  expect(late.result?.['structuredContent']).toMatchObject({ action: 'decline' })
  expect((await ask()).result?.['resultType']).toBe('input_required')
  const inTime = await ask({ inputResponses, requestState })
  expect(inTime.result?.['structuredContent']).toMatchObject({ action: 'accept' })
})

test('by a request such a process asks nobody, whatever is enabled, and is told so', async () => {
  const elicitation = { enabled: true }
  const server = fixture('asks', { instance: 'call', elicitation, sampling: true })
  await using at = await daemon(configOf({ asks: server }))
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await using heard = await hearing(at.client)
  await session.ask('session/attach', { server: 'asks' })
  const capabilities = { elicitation: {}, sampling: {} }
  await session.ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo: {} })
  session.tell('notifications/initialized')
  const answerTo = async (method: string): Promise<unknown> =>
    (await session.ask('tools/call', { name: 'ask', arguments: { method } })).result?.['structuredContent']
  expect(await answerTo('elicitation/create')).toEqual({ result: { action: 'decline' } })
  expect(await answerTo('sampling/createMessage')).toMatchObject({
    error: { message: expect.stringMatching(/reaches no host from .* a call’s own process$/) },
  })
  const heardOf = session.lines.map((line) => (JSON.parse(line) as { method?: string }).method)
  expect(heardOf.filter((method) => /^(elicitation|sampling)/.test(method ?? ''))).toEqual([])
  await eventually(() => heard.events.filter(({ type }) => type === 'control/refused').length === 2)
})
