// What a server may ask of its host, by its settings: in the era of requests, and in the later one of results.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { askable, askableMeta, attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { patienceMs } from '../support/patience.ts'
import { tempDir } from '../support/temp-dir.ts'

const scripted = (more: Partial<ServerSettings> = {}): Promise<HostEnd> =>
  attach(serverSettings('raw-script.mjs', more))

const tell = (id: number, ...replies: string[]): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t","arguments":{"big":12345678901234567890},"_meta":${JSON.stringify({ ...askableMeta, '@reply': Buffer.from(replies.map((reply) => `${reply}\n`).join('')).toString('base64') })}}}`

const ok = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`
const request = (method: string, id = '"s1"'): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{}}`

const mount = { source: '/host/docs', target: '/work space', access: 'read', reason: 'docs' } as const

/** A server that answers a request of its own with the answer it got, as a log notification. */
const asked = async (
  method: string,
  more: Partial<ServerSettings>,
  capabilities: object = askable,
  question: object = {},
): Promise<{ host: HostEnd; answer: unknown }> => {
  const host = await attach(serverSettings('asks.mjs', more))
  const hello = { protocolVersion: '2025-11-25', capabilities }
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: hello })
  await host.answer('i')
  const params = { name: 'ask', arguments: { method, question } }
  host.send({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params })
  return {
    host,
    answer: ((await host.answer('c')).result as unknown as { structuredContent: unknown }).structuredContent,
  }
}

test('roots are the declared mounts as the server sees them, and never the host’s own', async () => {
  const { host, answer } = await asked('roots/list', { mounts: [mount] })
  await using _ = host
  expect(answer).toMatchObject({ result: { roots: [{ uri: 'file:///work%20space', name: 'work space' }] } })
  expect(host.lines.some((line) => line.includes('roots/list'))).toBe(false)
})

test('with roots none the list is empty', async () => {
  const { host, answer } = await asked('roots/list', { mounts: [mount], roots: 'none' })
  await using _ = host
  expect(answer).toMatchObject({ result: { roots: [] } })
})

test('the host’s word that its roots changed does not reach the server', async () => {
  await using host = await scripted()
  host.send('{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}', tell(1, ok(1)))
  await host.answer(1)
})

test('sampling that is off is an error to the server, and the host never sees it', async () => {
  const { host, answer } = await asked('sampling/createMessage', {})
  await using _ = host
  expect(answer).toMatchObject({ error: { data: { code: 'ERR_METHOD_REFUSED' } } })
  expect(host.lines).toHaveLength(2)
})

test.each([
  [{ elicitation: { enabled: false, timeoutMs: 1000, queue: 1 } }],
  [
    {
      elicitation: { enabled: true, timeoutMs: 1000, queue: 1 },
      trust: 'sandboxed',
      tools: { allow: ['*'], deny: [], readOnly: [] },
    },
  ],
  [{ elicitation: { enabled: true, timeoutMs: 1000, queue: 0 } }],
] as [Partial<ServerSettings>][])(
  'elicitation that is off, of a sandboxed server, or beyond the queue is declined: %j',
  async (more) => {
    const { host, answer } = await asked('elicitation/create', more)
    await using _ = host
    expect(answer).toMatchObject({ result: { action: 'decline' } })
    expect(host.lines).toHaveLength(2)
  },
)

const on = { elicitation: { enabled: true, timeoutMs: 5000, queue: 16 }, sampling: true }

test.each([
  [{}, {}, 'elicitation'],
  [{ elicitation: true }, {}, 'elicitation'],
  [{ elicitation: {} }, { mode: 'url', url: 'https://x.example/' }, 'elicitation.url'],
  [{ elicitation: { url: {} } }, { mode: 'form' }, 'elicitation.form'],
])('a host that declares %j is not asked %j', async (capabilities, question, missing) => {
  const { host, answer } = await asked('elicitation/create', on, capabilities, question)
  await using _ = host
  expect(answer).toMatchObject({ result: { action: 'decline' } })
  expect(host.lines).toHaveLength(2)
  const reason = `the host did not declare capabilities.${missing}`
  expect(host.eventsOf('session/declined')).toMatchObject([{ detail: { reason } }])
})

test('a host that does not declare sampling is not asked to sample', async () => {
  const { host, answer } = await asked('sampling/createMessage', on, { elicitation: {} })
  await using _ = host
  const reason = 'the host did not declare capabilities.sampling'
  expect(answer).toMatchObject({ error: { data: { code: 'ERR_METHOD_REFUSED', reason } } })
  expect(host.eventsOf('session/refused').at(-1)?.detail['reason']).toContain(reason)
  expect(host.lines).toHaveLength(2)
})

test.each([
  [undefined, 'elicitation'],
  [{}, 'elicitation'],
  [{ sampling: {} }, 'elicitation'],
  [{ elicitation: { url: {} } }, 'elicitation.form'],
])('in 2026-07-28 a request that declares %j is not answered with a question', async (declared, missing) => {
  await using host = await attach(serverSettings('wants-input.mjs', { ...on, mounts: [mount] }))
  const _meta = { 'io.modelcontextprotocol/clientCapabilities': declared }
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 't', _meta } })
  const { result } = (await host.answer(1)) as unknown as { result: { line: string } }
  expect(JSON.parse(result.line)).toMatchObject({
    params: { inputResponses: { e: { action: 'decline' } } },
  })
  const reason = `the host did not declare capabilities.${missing}`
  expect(host.eventsOf('session/input-answered')).toMatchObject([{ detail: { reason } }])
})

test('elicitation that the host does not answer in time is declined, and the host is told', async () => {
  const { host, answer } = await asked('elicitation/create', {
    elicitation: { enabled: true, timeoutMs: 100, queue: 1 },
  })
  await using _ = host
  expect(answer).toMatchObject({ result: { action: 'decline' } })
  expect(host.lines.map((line) => (JSON.parse(line) as { method?: string }).method)).toEqual([
    undefined,
    'elicitation/create',
    'notifications/cancelled',
    undefined,
  ])
})

const helloAnswer =
  '{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}\n'
const hello = `"protocolVersion":"2025-11-25","_meta":{"@reply":"${Buffer.from(helloAnswer).toString('base64')}"}`

test.each(['"result":null', '"result":{},"error":{"code":1,"message":"no"}', '"error":"no"'])(
  'an answer of the host’s with %s is an error to the server, which waits no longer, and answers nothing that the host has asked',
  async (members) => {
    await using host = await attach(
      serverSettings('asks.mjs', { elicitation: { enabled: true, timeoutMs: patienceMs, queue: 1 } }),
    )
    const hello = { protocolVersion: '2025-11-25', capabilities: askable }
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: hello })
    await host.answer('i')
    const params = { name: 'ask', arguments: { method: 'elicitation/create' } }
    host.send({ jsonrpc: '2.0', id: 'ask', method: 'tools/call', params }) // the id that its question has, too
    await eventually(() => host.lines.some((line) => line.includes('elicitation/create')))
    host.send(`{"jsonrpc":"2.0","id":"ask",${members}}`)
    await eventually(() => host.lines.length === 4)
    expect(host.lines.slice(2).map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { id: null, error: { data: { code: 'ERR_INVALID_REQUEST' } } },
      {
        id: 'ask',
        result: {
          structuredContent: {
            error: { message: expect.stringContaining('the answer of the host cannot be read') },
          },
        },
      },
    ])
  },
)

test.each([
  [
    'a key twice',
    '"result":{"role":"assistant","content":{"type":"text","text":"a","text":"b"},"model":"m"}',
  ],
  ['a key twice, before its id', '"result":{"a":1,"a":2}', true],
  ['another key twice of its own', '"result":{},"result":{}'],
  ['its id twice', '"id":"ask","result":{}'],
  ['more than is read', `"result":{"content":[${'0,'.repeat(250_000)}0]}`],
  ['a line that is too long', `"result":{"content":"${'x'.repeat(2_000_000)}"}`],
  ['another version', '"jsonrpc":"1.0","result":{}', true],
  ['a key in another spelling', '"Result":{},"error":{"code":1,"message":"m"}'],
] as const)(
  'an answer of the host’s with %s is an error to the server, which waits for it, and to no call',
  async (_, members, isFirst?: boolean) => {
    const output = { resultBytes: 1_000_000, lineBytes: 1_000_000, stderrBytes: 1000 }
    await using host = await attach(serverSettings('asks.mjs', { sampling: true, output }))
    const hello = { protocolVersion: '2025-11-25', capabilities: askable }
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: hello })
    await host.answer('i')
    const params = { name: 'ask', arguments: { method: 'sampling/createMessage' } }
    host.send({ jsonrpc: '2.0', id: 'ask', method: 'tools/call', params }) // the id that its request has, too
    await eventually(() => host.lines.some((line) => line.includes('sampling/createMessage')))
    const version = members.includes('jsonrpc') ? '' : '"jsonrpc":"2.0",'
    host.send(isFirst === true ? `{${version}${members},"id":"ask"}` : `{${version}"id":"ask",${members}}`)
    await eventually(() => host.lines.length === 4)
    const [told, answer] = host.lines.slice(2).map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(told).toMatchObject({ id: null, error: {} })
    const message: unknown = expect.stringContaining('the answer of the host cannot be read')
    expect(answer).toMatchObject({ id: 'ask', result: { structuredContent: { error: { message } } } })
  },
)

test('no person is asked by a task: it is the host’s to say how long that waits', async () => {
  await using folder = await tempDir()
  const record = join(folder.path, 'record')
  await using host = await attach(
    serverSettings('raw-script.mjs', { ...on, args: [fixture('raw-script.mjs'), record] }),
  )
  const declared = (more: string): string =>
    `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{${hello},"capabilities":{"elicitation":{},"sampling":{"x":1.0},"tasks":{"requests":{${more}"sampling":{"createMessage":{}}}}}}}`
  host.send(declared('"elicitation":{"create":{}},'))
  await host.answer('i')
  expect(readFileSync(record, 'latin1')).toBe(`${declared('')}\n`)
  const asks = (n: number, method: string, task = ''): string =>
    `{"jsonrpc":"2.0","id":"s${n}","method":"${method}","params":{"message":"a\\u0062",${task}"n":1.0}}`
  const task = '"task":{"ttl":1},'
  host.send(
    tell(
      1,
      asks(1, 'elicitation/create', task),
      asks(2, 'elicitation/create', `${task}"Task":{},`),
      asks(3, 'sampling/createMessage', task),
      request('tasks/get', '"s4"'),
      ok(1),
    ),
  )
  await host.answer(1)
  expect(host.lines.slice(1, 5)).toEqual([
    asks(1, 'elicitation/create'),
    asks(2, 'elicitation/create'),
    asks(3, 'sampling/createMessage', task),
    request('tasks/get', '"s4"'),
  ])
})

test('where only questions are on, a host hears nothing about tasks of its own', async () => {
  await using host = await scripted({ elicitation: { enabled: true, timeoutMs: 1000, queue: 1 } })
  host.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{${hello}}}`)
  await host.answer('i')
  host.send(tell(1, request('tasks/get', '"s4"'), ok(1)))
  await host.answer(1)
  expect(host.lines).toHaveLength(2)
})

test('an answer of the host’s to what nobody asked does not reach the server', async () => {
  await using host = await scripted({ sampling: true })
  host.send(tell(1, request('sampling/createMessage'), ok(1)))
  await host.answer(1)
  host.send(
    '{"jsonrpc":"2.0","id":"other","result":{}}',
    '{"jsonrpc":"2.0","id":"s1","result":{}}',
    '{"jsonrpc":"2.0","id":"s1","result":{}}',
  )
  await eventually(() => host.eventsOf('session/unexpected-answer').length === 2)
})

const required = (id: number, requests: string): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","inputRequests":{${requests}},"requestState":"st\\u0061te"}}`
const elicit = '"e":{"method":"elicitation/create","params":{"message":"m"}}'
const roots = '"r":{"method":"roots/list"}'
const sample = '"s":{"method":"sampling/createMessage","params":{}}'

test('a result that asks for input passes byte for byte where its kind is enabled', async () => {
  await using host = await scripted({ elicitation: { enabled: true, timeoutMs: 1000, queue: 1 } })
  host.send(tell(1, required(1, elicit)))
  await host.answer(1)
  expect(host.lines).toEqual([required(1, elicit)])
})

test('a result that asks for what is off is an error to the host, which never sees the question', async () => {
  await using host = await scripted()
  host.send(tell(1, required(1, sample)))
  expect((await host.answer(1)).error?.data).toMatchObject({
    code: 'ERR_METHOD_REFUSED',
    asked: 'sampling/createMessage',
    reason: 'sampling is false',
  })
})

test('declined elicitation and roots are answered in the host’s stead, and the answer keeps the host’s id', async () => {
  await using host = await attach(serverSettings('wants-input.mjs', { mounts: [mount] }))
  host.send(
    '{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"t","arguments":{"big":12345678901234567890}}}',
  )
  const line = await eventually(() => host.lines[0])
  expect(line.startsWith('{"jsonrpc":"2.0","id":1.0,')).toBe(true)
  const { result } = JSON.parse(line) as { result: { line: string } }
  expect(result.line).toContain('"arguments":{"big":12345678901234567890}')
  expect(JSON.parse(result.line)).toMatchObject({
    params: {
      inputResponses: { e: { action: 'decline' }, r: { roots: [{ uri: 'file:///work%20space' }] } },
      requestState: 'state',
    },
  })
  expect(host.lines).toHaveLength(1)
  expect(roots).toContain('roots/list')
})

test('a server that asks for input without end is given up', async () => {
  await using host = await attach(
    serverSettings('wants-input.mjs', { args: [...serverSettings('wants-input.mjs').args, 'for ever'] }),
  )
  host.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}')
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_METHOD_REFUSED' })
})

test('a call that is taken back in one breath with its request is not sent, and is on record', async () => {
  await using host = await scripted()
  const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
  host.send(tell(0, ok(0)))
  await host.answer(0)
  host.send(Buffer.from(`${tell(1, ok(1))}\n${cancel}\n${tell(2, ok(2))}\n`))
  await host.answer(2)
  const ends = (): readonly unknown[] =>
    host.governed.records().filter(({ type }) => type === 'call.denied' || type === 'call.outcome')
  await eventually(() => ends().length === 3)
  expect(host.governed.records().filter(({ type }) => type === 'call.intent')).toHaveLength(2)
  const result = { body: { outcome: 'result' } }
  expect(ends()).toMatchObject([result, { body: { code: 'ERR_CALL_CANCELLED' } }, result])
  expect(host.lines).toEqual([ok(0), ok(2)])
})

test.each(['{"requestId":null}', '{"requestId":{"a":1}}', '{"requestId":[1]}', '{"requestId":1e999}', '{}'])(
  'a word that takes back what no request can be called reaches no server: %s',
  async (params) => {
    await using folder = await tempDir()
    const record = join(folder.path, 'record')
    await using host = await attach(
      serverSettings('raw-script.mjs', { args: [fixture('raw-script.mjs'), record] }),
    )
    host.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`, tell(1, ok(1)))
    await host.answer(1)
    expect(readFileSync(record, 'latin1')).toBe(`${tell(1, ok(1))}\n`)
    expect(host.eventsOf('session/refused')).toMatchObject([{ detail: { code: 'ERR_INVALID_REQUEST' } }])
  },
)

const takesBack = (params: string): string =>
  `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`

test.each([
  '{}',
  '{"requestId":null}',
  '{"requestId":["s1"]}',
  '{"requestId":"s1","requestId":"s1"}',
  '{"requestId":"s2"}',
  '{"requestId":1}',
])('a server takes back what it has asked of the host, and says so of nothing else: %s', async (params) => {
  await using host = await scripted()
  host.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{${hello}}}`)
  await host.answer('i')
  const whole = takesBack('{"reason":"why","requestId":"s1"}')
  const other = takesBack(params)
  host.send(tell(1, request('ping'), other, whole, whole, ok(1)))
  await host.answer(1)
  expect(host.lines.slice(1)).toEqual([request('ping'), whole, ok(1)])
  const refused = { detail: { sender: 'server', code: 'ERR_INVALID_REQUEST' } }
  expect(host.eventsOf('session/refused')).toMatchObject([refused, refused])
})

test('in the later era a server ends what the host has open, and nothing else', async () => {
  await using host = await scripted()
  const end = takesBack('{"requestId":1,"reason":"why"}')
  host.send(tell(1, takesBack('{"requestId":2}'), takesBack('{}'), end, ok(1)))
  await host.answer(1)
  expect(host.lines).toEqual([end, ok(1)])
  host.send(tell(2, end, ok(2)))
  await host.answer(2)
  expect(host.lines.slice(2)).toEqual([ok(2)])
})

test('a cancelled request may still be answered, and no other can take its id before', async () => {
  await using host = await scripted()
  host.send(tell(9, ok(9)))
  await host.answer(9)
  host.send('{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"t"}}')
  await eventually(() => host.governed.records().filter(({ type }) => type === 'call.intent').length === 2)
  host.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}')
  host.send(tell(0, ok(0)))
  expect((await host.answer(0)).error?.data).toMatchObject({ code: 'ERR_INVALID_REQUEST' })
  host.send(tell(1, ok(0), ok(1)))
  await host.answer(1)
  expect(host.lines.slice(2)).toEqual([ok(0), ok(1)])
  host.send(tell(0, ok(0)))
  await eventually(() => host.lines.length === 5)
})

test.each([
  ['5', 'a number'],
  ['false', 'a boolean'],
  ['["a"]', 'an array'],
  [`"${'x'.repeat(5000)}"`, '5002 bytes with its quotes'],
  ['"half \\ud800 of a pair"', 'half of a surrogate pair'],
  ['"\\ude00\\ud83d"', 'half of a surrogate pair'],
])('a lineage that no record has room for is refused with what it is (%#)', async (lineage, got) => {
  await using host = await attach(serverSettings('echo.mjs'))
  host.send(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"sallyport/lineage":${lineage}}}}`,
  )
  expect((await host.answer(1)).error?.message).toContain(`a string of at most 4096 bytes, got ${got}`)
})

test.each(['5', 'null', '["a"]', '{"a":1}'])(
  'a lineage that is no text is refused, and nothing is sent: %s',
  async (lineage) => {
    await using host = await attach(serverSettings('echo.mjs'))
    host.send(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"sallyport/lineage":${lineage}}}}`,
    )
    expect((await host.answer(1)).error?.data).toMatchObject({
      code: 'ERR_INVALID_REQUEST',
    })
    expect(host.governed.records().filter(({ type }) => type === 'call.intent')).toEqual([])
  },
)
