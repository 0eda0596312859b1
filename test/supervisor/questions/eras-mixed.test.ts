// Whatever came of `initialize`: a result that asks is judged, and so is an answer to it, in the words of either era.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { askable, askableMeta, attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

const sandboxed: Partial<ServerSettings> = {
  trust: 'sandboxed',
  roots: 'none',
  tools: { allow: ['t'], deny: [], readOnly: [] },
}
const asks: Partial<ServerSettings> = { elicitation: { enabled: true, timeoutMs: 60_000, queue: 1 } }

/** A host of a server that says what it is told to, and writes down what it hears. */
async function scripted(record: string, more: Partial<ServerSettings>): Promise<HostEnd> {
  return attach(serverSettings('raw-script.mjs', { args: [fixture('raw-script.mjs'), record], ...more }))
}

const line = (id: unknown, answer: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}\n`
const saying = (...lines: readonly string[]): object => ({
  ...askableMeta,
  '@reply': Buffer.from(lines.join('')).toString('base64'),
})

function send(host: HostEnd, id: unknown, method: string, params: object, ...said: readonly string[]): void {
  host.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta: saying(...said) } })
}

const hello = { protocolVersion: '2025-11-25', capabilities: askable }
async function initialize(host: HostEnd, answer: string, id = 'i') {
  send(host, id, 'initialize', hello, line(id, answer))
  return host.answer(id)
}

const call = async (host: HostEnd, id: number, answer: string, more: object = {}) => {
  send(host, id, 'tools/call', { name: 't', ...more }, line(id, answer))
  return host.answer(id)
}

const required = (...questions: readonly string[]): string =>
  `"result":{"resultType":"input_required","inputRequests":{${questions.join(',')}},"requestState":"s"}`
const form = (field: string): string =>
  `"e":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"${field}":{"type":"string"}}}}}`
const sample = '"s":{"method":"sampling/createMessage","params":{}}'
const said = (content: string): object => ({
  inputResponses: { e: { action: 'accept', content: { name: content } } },
})

const refused =
  '"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}'
const settled = '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}'
const later = '"result":{"protocolVersion":"2026-07-28","capabilities":{"tools":{}}}'

const noHandshakes = [
  ['is refused', refused],
  ['is no method of the server’s', '"error":{"code":-32601,"message":"no"}'],
  ['is answered with a version that has none', later],
] as const

test.each([...noHandshakes, ['succeeds', settled]] as const)(
  'where initialize %s, a sandboxed server asks nobody for anything, and is given no answer',
  async (_, answer) => {
    await using dir = await tempDir()
    const record = join(dir.path, 'received')
    await using host = await scripted(record, sandboxed)
    await initialize(host, answer)
    for (const [n, question] of [sample, '"t":{"method":"tools/call","params":{"name":"t"}}'].entries())
      expect((await call(host, n, required(question))).error?.data).toMatchObject({
        code: 'ERR_METHOD_REFUSED',
      })
    const roots = { r: { roots: [{ uri: 'file:///home/ann' }] } }
    const given = { inputResponses: { ...roots, e: { action: 'accept', content: { name: 'Ann' } } } }
    await call(host, 9, '"result":{}', given)
    expect(readFileSync(record, 'utf8')).not.toMatch(/home|Ann/)
    expect(host.lines.join('\n')).not.toMatch(/input_required/)
  },
)

test.each(noHandshakes)(
  'where initialize %s, a person is asked as in the later era: flagged, counted, and on no record',
  async (_, answer) => {
    await using dir = await tempDir()
    await using host = await scripted(join(dir.path, 'received'), asks)
    await initialize(host, answer)
    expect((await call(host, 1, required(form('password')))).result).toMatchObject({
      resultType: 'input_required',
    })
    expect(host.eventsOf('session/sensitive-question')[0]?.detail).toMatchObject({ fields: ['password'] })
    // The queue is full: this one is declined in the host's stead, whose server repeats what it was told to say.
    send(host, 2, 'tools/call', { name: 't' }, line(2, required(form('name'))))
    await eventually(() => host.eventsOf('session/input-answered').length === 1)
    await call(host, 3, '"result":{"content":[{"type":"text","text":"Annabelle"}]}', {
      ...said('Annabelle'),
      requestState: 's',
    })
    expect(JSON.stringify(host.governed.records())).not.toContain('Annabelle')
  },
)

test('a handshake with a version that has none is an error that names it', async () => {
  await using dir = await tempDir()
  await using host = await scripted(join(dir.path, 'received'), {})
  const { error } = await initialize(host, later)
  expect(error).toMatchObject({ data: { code: 'ERR_SERVER_PROTOCOL' } })
  expect(error?.message).toContain('"2026-07-28"')
})

test.each([['2024-11-05'], ['2025-06-18'], ['2025-11-25'], ['one-of-2999']])(
  'a handshake with any other version passes byte for byte: %s',
  async (version) => {
    await using dir = await tempDir()
    await using host = await scripted(join(dir.path, 'received'), {})
    const answer = `"result":{"protocolVersion":"${version}","capabilities":{}}`
    await initialize(host, answer)
    expect(host.lines).toEqual([line('i', answer).trimEnd()])
  },
)

test('after a handshake no result asks, whatever is enabled, and the host reads why', async () => {
  await using dir = await tempDir()
  await using host = await scripted(join(dir.path, 'received'), { ...asks, sampling: true })
  await initialize(host, settled)
  for (const [n, question] of [form('name'), sample].entries())
    expect((await call(host, n, required(question))).error?.data).toMatchObject({
      code: 'ERR_METHOD_REFUSED',
      reason: 'in a session that began with initialize no answer may ask',
    })
  send(host, 7, 'prompts/list', {}, line(7, `"result":{"prompts":[],"Input_Requests":{}}`))
  send(host, 8, 'prompts/list', {}, line(8, `"result":{"prompts":[],"InputRequests":{${sample}}}`))
  expect((await host.answer(7)).result).toBeDefined()
  expect((await host.answer(8)).error?.data).toMatchObject({ code: 'ERR_METHOD_REFUSED' })
})

test('what was said before the handshake was refused is judged, too', async () => {
  await using dir = await tempDir()
  const record = join(dir.path, 'received')
  await using host = await scripted(record, { ...asks, sampling: true })
  send(host, 'i', 'initialize', hello)
  send(host, 1, 'tools/call', { name: 't' })
  send(host, 'r', 'ping', {}, line('r', '"result":{}'), line('i', refused))
  await host.answer('i')
  await eventually(() => readFileSync(record, 'utf8').includes('tools/call'))
  send(host, 2, 'ping', {}, line(2, '"result":{}'), line(1, required(sample)))
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_METHOD_REFUSED' })
})

test('a second initialize that is refused takes nothing from the first, nor does one before the other', async () => {
  await using dir = await tempDir()
  await using host = await scripted(join(dir.path, 'received'), asks)
  send(host, 'i', 'initialize', hello)
  send(host, 'j', 'initialize', hello, line('i', refused), line('j', settled))
  await host.answer('j')
  await initialize(host, refused, 'k')
  const question = '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}\n'
  send(host, 1, 'ping', {}, question, line(1, '"result":{}'))
  await host.answer(1)
  expect(host.lines).toContain(question.trimEnd())
})
