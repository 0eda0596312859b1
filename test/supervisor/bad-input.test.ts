// What a host may say that is wrong, each with the error that it gets; the session goes on after all of them.
import { expect, test } from 'vitest'
import { governedMethods } from '../../src/schema/governed-methods.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'

async function ready(
  more: Parameters<typeof serverSettings>[1] = {},
  version = '2025-11-25',
): Promise<HostEnd> {
  const host = await attach(serverSettings('echo.mjs', more))
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: version } })
  await host.answer('i')
  return host
}

/** The error that the last line holds, once it is there. */
async function refusal(
  host: HostEnd,
  line: string | Buffer,
): Promise<{ id: unknown; code: number; data: { code: string } }> {
  const before = host.lines.length
  host.send(line)
  const last = await eventually(() => host.lines[before])
  const { id, error } = JSON.parse(last) as { id: unknown; error: { code: number; data: { code: string } } }
  return { id, ...error }
}

const callWith = (params: string, id = '1'): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`

test.each([
  ['half an object', '{"jsonrpc":"2.0","id":1', 'ERR_PARSE'],
  ['words', 'hello', 'ERR_PARSE'],
  ['a byte order mark', '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}', 'ERR_PARSE'],
  ['a NUL', '{"jsonrpc":"2.0","id":1,"method":"ping"}\0', 'ERR_PARSE'],
  ['a NUL in a string', '{"jsonrpc":"2.0","id":1,"method":"pi\0ng"}', 'ERR_PARSE'],
  ['NaN', '{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 'ERR_PARSE'],
  ['a comment', '{"jsonrpc":"2.0",/**/"id":1,"method":"ping"}', 'ERR_PARSE'],
  ['a trailing comma', '{"jsonrpc":"2.0","id":1,"method":"ping",}', 'ERR_PARSE'],
  ['two objects', '{"jsonrpc":"2.0","id":1,"method":"ping"}{}', 'ERR_PARSE'],
  ['depth without end', '['.repeat(100_000), 'ERR_BATCH_REFUSED'],
  ['an object of depth without end', `{"a":${'['.repeat(100_000)}`, 'ERR_PARSE'],
  ['a number', '17', 'ERR_INVALID_REQUEST'],
  ['a string', '"ping"', 'ERR_INVALID_REQUEST'],
  ['no version', '{"id":1,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['no method', '{"jsonrpc":"2.0","id":1}', 'ERR_INVALID_REQUEST'],
  ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":2}', 'ERR_INVALID_REQUEST'],
  ['a null id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['a boolean id', '{"jsonrpc":"2.0","id":true,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['an object as id', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['an array as id', '{"jsonrpc":"2.0","id":[1],"method":"ping"}', 'ERR_INVALID_REQUEST'],
  ['an id beyond all numbers', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  [
    'arguments beside the params of a call',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"arguments":{"a":1}}',
    'ERR_INVALID_REQUEST',
  ],
  ['a member of nobody’s', '{"jsonrpc":"2.0","extra":1,"id":1,"method":"ping"}', 'ERR_INVALID_REQUEST'],
  [
    'a call without id',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}',
    'ERR_INVALID_REQUEST',
  ],
  ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'ERR_BATCH_REFUSED'],
  ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"tools/callx"}', 'ERR_METHOD_REFUSED'],
  ['a method of Object', '{"jsonrpc":"2.0","id":1,"method":"constructor"}', 'ERR_METHOD_REFUSED'],
  ["the server's method", '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}', 'ERR_METHOD_REFUSED'],
  [
    'the same key twice',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'the same key twice, once escaped',
    '{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"x"}',
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  ['a key in another case', '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}', 'ERR_MESSAGE_AMBIGUOUS'],
  ['a key that folds', '{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}', 'ERR_MESSAGE_AMBIGUOUS'],
  [
    'a key with a NUL',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method\\u0000":"x"}',
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  ['a parameter in another case', callWith('{"name":"echo","Name":"fail"}'), 'ERR_MESSAGE_AMBIGUOUS'],
  ['a parameter in another case only', callWith('{"Name":"echo"}'), 'ERR_MESSAGE_AMBIGUOUS'],
  ['a parameter with a full-width letter', callWith('{"name":"echo","ｎame":"x"}'), 'ERR_MESSAGE_AMBIGUOUS'],
  ['a parameter twice', callWith('{"name":"echo","name":"fail"}'), 'ERR_MESSAGE_AMBIGUOUS'],
  [
    'a prototype for what the parameters lack',
    callWith('{"name":"echo","__proto__":{"arguments":{"text":"x"}}}'),
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'a prototype for what the envelope lacks',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","__proto__":{"params":{"name":"echo"}}}',
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'a lineage in another case',
    callWith('{"name":"echo","_meta":{"sallyport/lineage":"real","Sallyport/Lineage":"forged"}}'),
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'a progress token in another case, of what is relayed',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"ProgressToken":1}}}',
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'more keys in _meta than are looked at',
    callWith(`{"name":"echo","_meta":{${Array.from({ length: 1025 }, (_, n) => `"k${n}":1`).join()}}}`),
    'ERR_MESSAGE_TOO_LARGE',
  ],
  [
    'capabilities in another case',
    callWith('{"name":"echo","_meta":{"IO.ModelContextProtocol/clientCapabilities":{}}}'),
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  [
    'a key twice deep in the arguments',
    callWith('{"name":"echo","arguments":{"a":[{"b":1,"b":2}]}}'),
    'ERR_MESSAGE_AMBIGUOUS',
  ],
  ['a tool that is no string', callWith('{"name":["echo"]}'), 'ERR_INVALID_REQUEST'],
  ['a tool whose name is no name', callWith('{"name":"a/b"}'), 'ERR_POLICY_DENIED'],
])('%s is refused by name, and the session goes on', async (_what, line, code) => {
  await using host = await ready()
  expect(await refusal(host, line)).toMatchObject({ data: { code } })
  host.send({ jsonrpc: '2.0', id: 'after', method: 'ping' })
  expect((await host.answer('after')).result).toEqual({})
})

test.each([
  ['the era of handshakes', 'echo.mjs', true],
  ['2026-07-28', 'shares.mjs', false],
])('params that are no object are refused wherever policy reads them, in %s', async (_era, server, isMet) => {
  await using host = isMet ? await ready() : await attach(serverSettings(server))
  for (const method of [...governedMethods, 'subscriptions/listen'])
    for (const params of ['["note:///a"]', '[]', '"note:///a"', '1', 'true', 'null'])
      expect(
        await refusal(host, `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`),
      ).toMatchObject({ id: 1, data: { code: 'ERR_INVALID_REQUEST' } })
  expect(host.governed.records().filter(({ type }) => type.startsWith('call.'))).toEqual([])
})

test('bytes that are not UTF-8 are refused', async () => {
  await using host = await ready()
  const line = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff"}\n', 'latin1')
  expect(await refusal(host, line)).toMatchObject({ id: null, data: { code: 'ERR_PARSE' } })
})

test.each(['1.0', '1e2', '-0', '12345678901234567890', '0.5', '"a\\u0062"', '"é😀"', '""'])(
  'the id %s comes back in a refusal as it was written',
  async (id) => {
    await using host = await ready()
    host.send(`{"jsonrpc":"2.0","id":${id},"method":"no/such"}`)
    const line = await eventually(() => host.lines[1])
    expect(line.startsWith(`{"jsonrpc":"2.0","id":${id},"error":`)).toBe(true)
  },
)

test('a line over the limit is refused with its id, is not kept, and the next line passes', async () => {
  const output = { resultBytes: 1000, lineBytes: 10_000, stderrBytes: 1000 }
  await using host = await ready({ output })
  const line = `{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"${'x'.repeat(500_000)}"}}`
  expect(await refusal(host, line)).toMatchObject({ id: 'big', data: { code: 'ERR_MESSAGE_TOO_LARGE' } })
  host.send({ jsonrpc: '2.0', id: 'after', method: 'ping' })
  expect((await host.answer('after')).result).toEqual({})
})

test('what comes before a line over the limit, in the same write, is answered before it', async () => {
  const output = { resultBytes: 1000, lineBytes: 10_000, stderrBytes: 1000 }
  await using host = await ready({ output })
  const long = callWith(`{"x":"${'x'.repeat(20_000)}"}`, '"big"')
  const unknown = ['"first"', '"last"'].map((id) => `{"jsonrpc":"2.0","id":${id},"method":"no/such"}`)
  host.send([unknown[0], long, unknown[1]].join('\n'))
  await host.answer('last')
  const ids = host.lines.slice(1).map((line) => (JSON.parse(line) as { readonly id: unknown }).id)
  expect(ids).toEqual(['first', 'big', 'last'])
})

const many = `[${'{},'.repeat(250_000)}{}]`
test.each([
  ['behind its id', callWith(`{"name":"echo","arguments":{"v":${many}}}`, '"heavy"')],
  ['before its id', `{"params":{"x":${many}},"method":"resources/read","jsonrpc":"2.0","id":"heavy"}`],
])('more keys and values than are read are refused %s, and the next line passes', async (_where, line) => {
  await using host = await ready()
  const { id, ...error } = await refusal(host, line)
  expect({ id, ...error }).toMatchObject({
    id: 'heavy',
    message: expect.stringContaining('more than 250000 keys and values') as string,
    data: { code: 'ERR_MESSAGE_TOO_LARGE' },
  })
  host.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"v":${many}}}`)
  host.send({ jsonrpc: '2.0', id: 'after', method: 'ping' })
  expect((await host.answer('after')).result).toEqual({})
})

test.each([
  ['a key twice in its params', '{"jsonrpc":"2.0","id":"own","method":"ping","params":{"a":1,"a":2}}'],
  ['the same before its id', '{"params":{"a":1,"a":2},"method":"ping","jsonrpc":"2.0","id":"own"}'],
  ['its method twice', '{"jsonrpc":"2.0","id":"own","method":"ping","method":"ping"}'],
  ['its id twice', '{"jsonrpc":"2.0","id":"own","method":"ping","id":7}'],
  ['no version', '{"id":"own","method":"ping"}'],
  ['no method', '{"jsonrpc":"2.0","id":"own"}'],
])('a request of the host’s that is refused has its own id in the refusal: %s', async (_what, line) => {
  await using host = await ready()
  expect(await refusal(host, line)).toMatchObject({ id: 'own' })
})

test('what is no message is refused as that in a batch, too, each by itself', async () => {
  await using host = await ready({}, '2025-03-26')
  host.send('[1, "a",true ,null]', '[1,2,3]', '[17]')
  await eventually(() => host.lines.length === 9)
  const refusals = host.lines
    .slice(1)
    .map((line) => JSON.parse(line) as { id: unknown; error: { code: number } })
  expect(refusals.map(({ id, error }) => [id, error.code])).toEqual(
    Array.from({ length: 8 }, () => [null, -32600]),
  )
})

test('a batch of more messages than are looked at is refused as a whole', async () => {
  await using host = await ready({}, '2025-03-26')
  const error = await refusal(host, `[${'{},'.repeat(10_000)}{}]`)
  expect(error).toMatchObject({ id: null, data: { code: 'ERR_MESSAGE_TOO_LARGE' } })
  expect(host.lines).toHaveLength(2)
})

test('an id that is in flight cannot be used again', async () => {
  await using host = await attach(serverSettings('slow.mjs'))
  host.send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })
  await host.answer(1)
  host.send(
    callWith('{"name":"wait","arguments":{"ms":1000}}', '7'),
    callWith('{"name":"wait","arguments":{"ms":1000}}', '7.0'),
  )
  expect(JSON.parse(await eventually(() => host.lines[1]))).toMatchObject({
    error: { data: { code: 'ERR_INVALID_REQUEST' } },
  })
})

test('where the version has batches, what is allowed of one passes and the rest is answered', async () => {
  await using host = await ready({ tools: { allow: [], deny: ['fail'], readOnly: [] } }, '2025-03-26')
  host.send(`[${callWith('{"name":"fail"}', '1')}, {"jsonrpc":"2.0","id":"p","method":"no/such"}]`)
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_POLICY_DENIED' })
  expect((await host.answer('p')).error?.data).toMatchObject({ code: 'ERR_METHOD_REFUSED' })
})

test('unknown notifications and answers that nobody asked for go nowhere, and are told', async () => {
  await using host = await ready()
  host.send({ jsonrpc: '2.0', method: 'notifications/none' }, { jsonrpc: '2.0', id: 99, result: {} })
  await eventually(() => host.eventsOf('session/refused').length === 1)
  await eventually(() => host.eventsOf('session/unexpected-answer').length === 1)
  expect(host.lines).toHaveLength(1)
})
