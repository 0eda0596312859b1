// A server sends a person to an address by an error, too: only where its settings let it ask a person, and the host opens addresses.
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { readEnvelope } from '../../src/supervisor/message/envelope.ts'
import { nothingDeclared } from '../../src/supervisor/questions/declared.ts'
import { whyNotSent } from '../../src/supervisor/questions/url-required.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { serverSettings } from '../support/server-settings.ts'

const address = 'https://example.com/give-me-your-password'
const on = { elicitation: { enabled: true, timeoutMs: 60_000, queue: 16 } }
const errorOf = (code: string): string =>
  `{${code},"message":"go","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"${address}"}]}}`

const opens = { elicitation: { form: {}, url: {} } }
const formsAlone = { elicitation: { form: {} } }

/** Has the server answer so; `capabilities` are what the host declares, in the words of both eras. */
async function ask(
  host: HostEnd,
  id: number,
  method: string,
  answer: string,
  capabilities: object = opens,
): Promise<void> {
  const reply = Buffer.from(`{"jsonrpc":"2.0","id":${id},${answer}}\n`).toString('base64')
  const about = { name: 't', uri: 'x:1', protocolVersion: '2025-11-25', task: {}, taskId: 'task' }
  const _meta = { '@reply': reply, 'io.modelcontextprotocol/clientCapabilities': capabilities }
  const params = { ...about, capabilities, _meta }
  host.send({ jsonrpc: '2.0', id, method, params })
  await host.answer(id)
}

/** The host subscribes, so that it hears of tasks, and says in it that it opens addresses. */
function listen(host: HostEnd): void {
  const _meta = { 'io.modelcontextprotocol/clientCapabilities': opens }
  const params = { notifications: { taskIds: ['task'] }, _meta }
  host.send({ jsonrpc: '2.0', id: 'listen', method: 'subscriptions/listen', params })
}

const shaking = (more: Partial<ServerSettings>): Promise<HostEnd> =>
  attach(serverSettings('raw-script.mjs', { tools: { allow: ['t'], deny: [], readOnly: [] }, ...more }))

test.each([
  ['off', '"code":-32042', {}],
  ['off, and the number has another spelling', '"code":-3.2042E4', {}],
  ['off, and the number is a text', '"code":" -32_042.0 "', {}],
  ['off, and the number is a fraction', '"code":-32042.5', {}],
  ['off, and the key has another spelling', '"code":-32603,"Code":-32042', {}],
  ['off, and the key comes twice', '"code":-32042,"code":-32603', {}],
  ['on, and the server is sandboxed', '"code":-32042', { ...on, trust: 'sandboxed' }],
] as const)('no host hears of the address where elicitation is %s', async (_what, code, more) => {
  await using host = await shaking(more)
  await ask(host, 1, 'initialize', '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}')
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await using later = await shaking(more)
  for (const one of [host, later])
    for (const [id, method] of [
      [2, 'tools/call'],
      [3, 'prompts/list'],
    ] as const) {
      await ask(one, id, method, `"error":${errorOf(code)}`)
      expect((await one.answer(id)).error, method).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
    }
  expect(`${host.lines.join('\n')}${later.lines.join('\n')}`).not.toContain(address)
})

test('it passes as it came where elicitation is on and the host opens addresses', async () => {
  await using host = await shaking(on)
  await ask(host, 1, 'tools/call', `"error":${errorOf('"code":-32042')}`)
  expect(host.lines).toContain(`{"jsonrpc":"2.0","id":1,"error":${errorOf('"code":-32042')}}`)
})

const one = (more: string): string => `"code":-32042,"message":"go","data":{"elicitations":[{${more}}]}`
test.each([
  ['two addresses', one(`"mode":"url","elicitationId":"e","url":"https://good/","Url":"${address}"`)],
  ['an address twice', one(`"mode":"url","elicitationId":"e","url":"https://good/","url":"${address}"`)],
  ['no mode', one(`"elicitationId":"e","url":"${address}"`)],
  ['a form', one(`"mode":"form","message":"${address}","requestedSchema":{"type":"object","properties":{}}`)],
  ['two lists', `${one('"mode":"url"').slice(0, -1)},"Elicitations":[{"mode":"url","url":"${address}"}]}`],
  ['data twice', `${one('"mode":"url"')},"data":{"elicitations":[{"mode":"url","url":"${address}"}]}`],
])('what hosts could read as another address is told to none: %s', async (_what, error) => {
  await using host = await shaking(on)
  await ask(host, 1, 'tools/call', `"error":{${error}}`)
  expect((await host.answer(1)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
  expect(host.lines.join('\n')).not.toContain(address)
})

test('nor is what is too long to be looked at, where a task may have failed with one', () => {
  const failed = `{"tasks":[${'1,'.repeat(10_000)}{"error":${errorOf('"code":-32042')}}]}`
  const line = `{"jsonrpc":"2.0","id":1,"result":${failed}}`
  const envelope = readEnvelope(line, 0, line.length)
  if (envelope.kind !== 'response') throw new Error('that is no response')
  const may = serverSettings('raw-script.mjs', on)
  const declared = () => ({ ...nothingDeclared, url: true })
  expect(whyNotSent(may, envelope, declared)).not.toBeNull()
})

const missing = { code: 'ERR_METHOD_REFUSED' }
const undeclared = 'the host did not declare capabilities.elicitation.url'

test('in the era of handshakes a host that did not declare that it opens addresses hears of none', async () => {
  await using host = await shaking(on)
  const introduced = '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}'
  await ask(host, 1, 'initialize', introduced, formsAlone)
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  for (const [id, method] of [
    [2, 'tools/call'],
    [3, 'prompts/list'],
  ] as const) {
    await ask(host, id, method, `"error":${errorOf('"code":-32042')}`)
    const { error } = await host.answer(id)
    expect(error, method).toMatchObject({ data: missing, message: expect.stringContaining(undeclared) })
  }
  expect(host.lines.join('\n')).not.toContain(address)
})

test('in 2026-07-28 each request says whether its host opens addresses', async () => {
  await using host = await shaking(on)
  const error = `"error":${errorOf('"code":-32042')}`
  const tasks = `"result":{"tasks":[{"taskId":"task","status":"failed",${error}}]}`
  await ask(host, 1, 'tools/call', error, formsAlone)
  await ask(host, 2, 'prompts/list', error, formsAlone)
  await ask(host, 3, 'tasks/list', tasks, formsAlone)
  for (const id of [1, 2, 3]) expect((await host.answer(id)).error).toMatchObject({ data: missing })
  expect(host.lines.join('\n')).not.toContain(address)
  await ask(host, 4, 'tools/call', error, opens)
  await ask(host, 5, 'prompts/list', error, opens)
  for (const id of [4, 5]) expect((await host.answer(id)).error).toMatchObject({ code: -32042 })
})

test.each([
  ['with the address reaches no host where elicitation is off', '-32042', {}, opens, false],
  ['with the address reaches no host that does not open any', '-32042', on, formsAlone, false],
  ['with the address passes where elicitation is on', '-32042', on, opens, true],
  ['of any other kind passes', '-32603', {}, formsAlone, true],
] as const)('an error that answers nothing %s', async (_what, code, more, capabilities, isHeard) => {
  await using host = await shaking(more)
  const error = `{"jsonrpc":"2.0","id":null,"error":${errorOf(`"code":${code}`)}}`
  const introduced = '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}'
  await ask(host, 1, 'initialize', `${introduced}\n${error.slice(0, -1)}`, capabilities)
  await ask(host, 2, 'ping', '"result":{}')
  expect(host.lines.includes(error)).toBe(isHeard)
})

test('nor does what a failed task comes to hold the address where elicitation is off', async () => {
  await using host = await shaking({})
  const capabilities = '{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}'
  await ask(host, 1, 'initialize', `"result":{"protocolVersion":"2025-11-25","capabilities":${capabilities}}`)
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  const at = '2026-01-01T00:00:00Z'
  const task = `{"taskId":"task","status":"failed","createdAt":"${at}","lastUpdatedAt":"${at}","ttl":60000}`
  await ask(host, 2, 'tools/call', `"result":{"task":${task}}`)
  await ask(host, 3, 'tasks/result', `"error":${errorOf('"code":-32042')}`)
  expect((await host.answer(3)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
  expect(host.lines.join('\n')).not.toContain(address)
})

test.each([
  ['reaches no host where elicitation is off', {}, '"error":', false],
  ['reaches no host under another spelling of its key', {}, '"Error":', false],
  ['passes where elicitation is on', on, '"error":', true],
])('in 2026-07-28 the address in what a task came to %s', async (_what, more, key, isHeard) => {
  const failed = `"taskId":"task","status":"failed",${key}${errorOf('"code":-32042')}`
  const answers: readonly (readonly [string, string])[] = [
    ['tasks/get', `"result":{"resultType":"complete",${failed}}`],
    ['tasks/list', `"result":{"tasks":[{${failed}}]}`],
    [
      'prompts/list',
      `"result":{"prompts":[]}}\n{"jsonrpc":"2.0","method":"notifications/tasks","params":{${failed}}`,
    ],
  ]
  for (const [method, answer] of answers) {
    await using host = await shaking(more)
    const begun = '"result":{"resultType":"task","taskId":"task","status":"working","ttlMs":60000}'
    await ask(host, 1, 'tools/call', begun)
    listen(host)
    await ask(host, 2, method, answer)
    await ask(host, 3, 'ping', '"result":{}')
    expect(host.lines.join('\n').includes(address), method).toBe(isHeard)
    if (!isHeard && method.startsWith('tasks/'))
      expect((await host.answer(2)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
    // What answers nothing is put on record, as an answer is.
    const unheard = host.eventsOf('session/refused').filter(({ detail }) => detail['sender'] === 'server')
    expect(unheard.map(({ detail }) => detail['method'])).toEqual(
      isHeard || method.startsWith('tasks/') ? [] : ['notifications/tasks'],
    )
  }
})

test('a list of tasks inside another is no list of tasks, and is not looked through', () => {
  const failed = `{"error":${errorOf('"code":-32042')}}`
  const nested = (levels: number): string => (levels === 0 ? failed : `{"tasks":[${nested(levels - 1)}]}`)
  const isRefused = (result: string): boolean => {
    const line = `{"jsonrpc":"2.0","id":1,"result":${result}}`
    const envelope = readEnvelope(line, 0, line.length)
    if (envelope.kind !== 'response') throw new Error('that is no response')
    return whyNotSent(serverSettings('raw-script.mjs'), envelope, () => nothingDeclared) !== null
  }
  expect([0, 1, 2, 200].map((levels) => isRefused(nested(levels)))).toEqual([true, true, false, false])
})
