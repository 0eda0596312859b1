// Answers that are no answers: each is dropped and counted, or an error for whom it was for, and none is another call's.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import type { Governed } from '../support/governance.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { patienceMs } from '../support/patience.ts'
import { caller, superviseAll } from '../support/supervisor.ts'
import { tempDir } from '../support/temp-dir.ts'

const scripted = (more: Parameters<typeof serverSettings>[1] = {}): Promise<HostEnd> =>
  attach(serverSettings('raw-script.mjs', more))

/** The same, in the era in which a server may ask. */
async function introduced(): Promise<HostEnd> {
  const host = await scripted()
  const version = '{"protocolVersion":"2025-11-25"}'
  host.send(
    `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","_meta":{"@reply":"${base64([ok('"i"', version)])}"}}}`,
  )
  await host.answer('i')
  return host
}

const outcomesOf = (all: Governed): readonly unknown[] =>
  all
    .records()
    .filter(({ type }) => type === 'call.outcome')
    .map(({ body }) => body)

const base64 = (replies: readonly (string | Buffer)[]): string =>
  Buffer.concat(replies.flatMap((reply) => [Buffer.from(reply), Buffer.from('\n')])).toString('base64')
const tell = (id: string, ...replies: readonly (string | Buffer)[]): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t","_meta":{"@reply":"${base64(replies)}"}}}`
const ok = (id: string, value = '{}'): string => `{"jsonrpc":"2.0","id":${id},"result":${value}}`
const many = `{${Array.from({ length: 10_001 }, (_, n) => `"K${n}":1`).join()}}`
const badText = Buffer.from('{"jsonrpc":"2.0","id":77,"result":{"x":"\xff"}}', 'latin1')

const unexpected = 'session/unexpected-answer'
const garbage = 'session/garbage'

test.each([
  ['an id that nobody used', ok('99'), unexpected],
  ['the id as a string', ok('"1"'), unexpected],
  ['an id that differs beyond the point', ok('1.5'), unexpected],
  ['an id in another notation of another value', ok('1e1'), unexpected],
  ['a negative id', ok('-1'), unexpected],
  ['an error for nobody', '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}', unexpected],
  ['an id of Sallyport’s own form', ok('"sallyport-AAAAAAAAAAAAAAAAAAAAA"'), unexpected],
  ['bad text for nobody', badText, garbage],
  ['a number with a leading zero', ok('01'), garbage],
  ['a true id', ok('true'), garbage],
  ['an id in a list', ok('[1]'), garbage],
  ['an object as id', ok('{"id":1}'), garbage],
  ['a result with a null id', ok('null'), garbage],
  ['no id', '{"jsonrpc":"2.0","result":{}}', garbage],
  ['neither result nor error, for nobody', '{"jsonrpc":"2.0","id":99}', garbage],
  ['result and error, for a true id', '{"jsonrpc":"2.0","id":true,"result":{},"error":{}}', garbage],
  ['two ids', '{"jsonrpc":"2.0","id":1,"id":2,"result":{}}', garbage],
  ['a request and its result in one', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', garbage],
  ['a batch', `[${ok('1')},${ok('2')}]`, garbage],
  ['a NUL between', `${ok('1')}\0`, garbage],
  ['a NUL in a string', '{"jsonrpc":"2.0","id":1,"result":{"a":"\0"}}', garbage],
  ['two messages in a line', `${ok('1')}${ok('1')}`, garbage],
  ['half a message', '{"jsonrpc":"2.0","id":1,"result":{', garbage],
  ['no JSON', 'Listening on stdio!', garbage],
])('%s is dropped and counted, and the call gets its own answer', async (_what, line, event) => {
  await using host = await scripted()
  host.send(tell('1', line, ok('1', '{"own":true}')))
  await host.answer(1)
  expect(host.lines).toEqual([ok('1', '{"own":true}')])
  expect(host.eventsOf(event)).toHaveLength(1)
})

test.each([
  ['deeper than is read', ok('1', `${'['.repeat(100_000)}${']'.repeat(100_000)}`), 'nested deeper than 1000'],
  [
    'deeper than is read, with its id at the end',
    `{"jsonrpc":"2.0","result":${'['.repeat(100_000)}${']'.repeat(100_000)},"id":1}`,
    'nested deeper than 1000',
  ],
  ['depth without end', ok('1', '['.repeat(100_000)), 'nested deeper than 1000'],
  ['of more members than are looked at', ok('1', many), '10000'],
  ['of an error of as many', `{"jsonrpc":"2.0","error":${many},"id":1}`, '10000'],
  ['bad text', Buffer.from(ok('1', '"\xff"'), 'latin1'), 'not UTF-8'],
  [
    'result and error',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
    'one of result',
  ],
  ['neither result nor error', '{"jsonrpc":"2.0","id":1}', 'one of result'],
  ['the result null', ok('1', 'null'), 'must be an object'],
  ['the result 1', ok('1', '1'), 'must be an object'],
  ['a list as result', ok('1', '[{}]'), 'must be an object'],
  ['a text as result', ok('1', '"{}"'), 'must be an object'],
  ['an error that is a text', '{"jsonrpc":"2.0","id":1,"error":"no"}', 'must be an object'],
  ['an error that is null', '{"jsonrpc":"2.0","id":1,"error":null}', 'must be an object'],
  ['two results', '{"jsonrpc":"2.0","id":1,"result":{},"result":{"a":1}}', 'stands twice'],
  ['an id in another case, too', '{"jsonrpc":"2.0","id":1,"ID":2,"result":{}}', 'take differently'],
  ['another version', '{"jsonrpc":"1.0","id":1,"result":{}}', 'must be "2.0"'],
  ['no version', '{"id":1,"result":{}}', 'must be "2.0"'],
])('%s ends the call that it answers by name, and nothing else', async (_what, line, why) => {
  await using host = await scripted()
  host.send(tell('1', line))
  expect((await host.answer(1)).error).toMatchObject({
    message: expect.stringMatching(
      new RegExp(`^mcp server fixture gave an answer that cannot be read: .*${why}`),
    ),
    data: { code: 'ERR_SERVER_PROTOCOL', retryable: false },
  })
  expect(host.eventsOf(garbage)).toHaveLength(1)
  await eventually(() => outcomesOf(host.governed).length > 0)
  expect(outcomesOf(host.governed)).toMatchObject([
    { outcome: 'error', detail: expect.stringContaining('gave an answer that cannot be read') },
  ])
  host.send(tell('2', ok('2')))
  await host.answer(2)
})

const noAnswers = ['{"result":{},"error":{"code":1,"message":""}}', '{}', '{"result":null}', '{"error":"no"}']

test.each(noAnswers.flatMap((members) => [[members, 'session'] as const, [members, 'call'] as const]))(
  'a control call that is answered with %s ends at once, whatever its process (instance: %s)',
  async (members, instance) => {
    await using all = await superviseAll([serverSettings('garbage.mjs', { instance })])
    const call = {
      server: 'fixture',
      tool: 'malformed',
      arguments: new RawJson(JSON.stringify({ members })),
      timeoutMs: null,
      generation: null,
      lineage: null,
    }
    const signal = AbortSignal.timeout(patienceMs)
    await expect(all.supervisor.call(caller(), call, { signal })).rejects.toMatchObject({
      code: 'ERR_SERVER_PROTOCOL',
    })
    await eventually(() => outcomesOf(all.governed).length > 0)
    expect(outcomesOf(all.governed)).toMatchObject([{ outcome: 'error' }])
  },
)

test.each(noAnswers)(
  'a call of a session in a process of its own that is answered with %s ends at once',
  async (members) => {
    await using host = await attach(serverSettings('garbage.mjs', { instance: 'call' }))
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25' } })
    await host.answer('i')
    const params = { name: 'malformed', arguments: { members } }
    host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
    await eventually(() => outcomesOf(host.governed).length > 0)
    expect(outcomesOf(host.governed)).toMatchObject([{ outcome: 'error' }])
  },
)

test('a call of nobody’s that is nested too deep is garbage like any other', async () => {
  await using host = await scripted()
  const request = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(2000)}${']'.repeat(2000)}}`
  host.send(tell('1', request, ok('1', '{"own":true}')))
  await host.answer(1)
  expect(host.lines).toEqual([ok('1', '{"own":true}')])
})

test.each(['1', '1.0', '1e0', '10e-1'])('%s is the same id as 1, once', async (id) => {
  await using host = await scripted()
  host.send(tell('1', ok(id, '{"first":1}'), ok('1', '{"second":2}'), ok('1.0', '{"third":3}')))
  await host.answer(1)
  host.send(tell('2', ok('2')))
  await host.answer(2)
  expect(host.lines).toEqual([ok(id, '{"first":1}'), ok('2')])
  expect(host.eventsOf(unexpected).at(-1)?.detail).toMatchObject({ count: 2 })
})

test('an answer to what the host has yet to ask is not kept for it', async () => {
  await using host = await scripted()
  host.send(tell('1', ok('2', '{"forged":1}'), ok('1')))
  await host.answer(1)
  host.send(tell('2', ok('2', '{"own":1}')))
  await host.answer(2)
  expect(host.lines).toEqual([ok('1'), ok('2', '{"own":1}')])
})

test('an answer that comes while its call still waits for approval is dropped', async () => {
  const rules = [
    { permission: 'mcp:*:*', action: 'ask', where: { '/ask': '*' }, origin: 'rules[0]' },
  ] as const
  const open = { permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[1]' } as const
  await using host = await attach(serverSettings('raw-script.mjs'), { rules: [...rules, open] })
  const { governance } = host.governed
  using _listening = { [Symbol.dispose]: governance.listen() }
  host.send(
    `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"ask":"x"},"_meta":{"@reply":"${base64([ok('5', '{"own":1}')])}"}}}`,
  )
  const [question] = await eventually(
    () => governance.approvals.pending().length > 0 && governance.approvals.pending(),
  )
  host.send(
    `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"t","arguments":{"ask":1},"_meta":{"@reply":"${base64([ok('5', '{"forged":1}'), ok('6')])}"}}}`,
  )
  for (const { id } of await eventually(
    () => governance.approvals.pending().length === 2 && governance.approvals.pending(),
  ))
    if (id !== question?.id) governance.approvals.approve(id, '0', null)
  await host.answer(6)
  governance.approvals.approve(question?.id ?? '', '0', null)
  await host.answer(5)
  expect(host.lines).toEqual([ok('6'), ok('5', '{"own":1}')])
})

test('an answer that is not UTF-8 is an error for whom it was for', async () => {
  await using host = await scripted()
  host.send(tell('77', badText))
  expect((await host.answer(77)).error?.data).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
  host.send(tell('1', ok('1')))
  await host.answer(1)
  const outcomes = host.governed.records().filter(({ type }) => type === 'call.outcome')
  expect(outcomes[0]?.body).toMatchObject({ outcome: 'error' })
})

test('a request of the server’s under an id of the host’s is another matter', async () => {
  await using host = await introduced()
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  host.send(tell('1', ping))
  await eventually(() => host.lines.length === 2)
  host.send(`{"jsonrpc":"2.0","id":1,"result":{},"_":{"@reply":"${base64([ok('1', '{"own":1}')])}"}}`)
  await host.answer(1)
  expect(host.lines.slice(1)).toEqual([ping, ok('1', '{"own":1}')])
})

test('a server that asks twice under one id is told so, and the host is asked once', async () => {
  await using host = await introduced()
  const ping = '{"jsonrpc":"2.0","id":"p","method":"ping"}'
  host.send(tell('1', ping, ping, ok('1')))
  await host.answer(1)
  expect(host.lines.slice(1)).toEqual([ping, ok('1')])
  expect(host.eventsOf('session/refused')).toMatchObject([{ detail: { sender: 'server', code: 'ERR_BUSY' } }])
})

test('in the era without handshakes a server’s request reaches nobody, and is not answered', async () => {
  await using record = await tempDir()
  const file = join(record.path, 'heard')
  await using host = await scripted({ args: [fixture('raw-script.mjs'), file] })
  const asks = ['ping', 'elicitation/create', 'sampling/createMessage', 'roots/list', 'tasks/get'].map(
    (method, n) => `{"jsonrpc":"2.0","id":"s${n}","method":"${method}","params":{}}`,
  )
  const said = tell('1', ...asks, ok('1'))
  host.send(said)
  await host.answer(1)
  host.send(tell('2', ok('2')))
  await host.answer(2)
  expect(host.lines).toEqual([ok('1'), ok('2')])
  expect(readFileSync(file, 'utf8')).toBe(`${said}\n${tell('2', ok('2'))}\n`)
  expect(host.eventsOf('session/refused').map(({ detail }) => detail['method'])).toContain(
    'elicitation/create',
  )
})

test('an answer of eleven megabytes is an error for whom it was for, and the next call passes', async () => {
  await using host = await attach(serverSettings('huge-line.mjs'))
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25' } })
  await host.answer('i')
  const huge = { name: 'huge', arguments: { bytes: 11 * 1_048_576 } }
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: huge })
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  host.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: { a: 1 } } })
  expect((await host.answer(2)).result).toMatchObject({ structuredContent: { a: 1 } })
})

test('a flood of notifications reaches the host whole and in order, before the answer behind it', async () => {
  await using host = await scripted()
  const flood = Array.from(
    { length: 20_000 },
    (_, n) => `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}`,
  )
  host.send(tell('1', ...flood, ok('1')))
  await host.answer(1)
  expect(host.lines).toEqual([...flood, ok('1')])
})

test('a flood of notifications that nobody knows reaches nobody, and is counted, not told one by one', async () => {
  await using host = await scripted()
  const flood = Array<string>(20_000).fill('{"jsonrpc":"2.0","method":"notifications/none"}')
  host.send(tell('1', ...flood, ok('1')))
  await host.answer(1)
  expect(host.lines).toEqual([ok('1')])
  const told = host.eventsOf('session/refused')
  expect(told.length).toBeLessThan(20)
  expect(told.at(-1)?.detail['count']).toBeGreaterThan(16_000)
})

test.each(['null', '[]', '"no"', '1'])(
  'a handshake that is answered with %s ends its session at once, and the host is told why',
  async (value) => {
    await using host = await scripted()
    const reply = base64([ok('"i"', value)])
    host.send(
      `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","_meta":{"@reply":"${reply}"}}}`,
      `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`,
    )
    expect((await host.answer('i')).error?.data).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
    expect((await host.answer('l')).error?.data).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
    expect(await host.session.ended).toMatchObject({ reason: expect.stringContaining('cannot be read') })
  },
)
