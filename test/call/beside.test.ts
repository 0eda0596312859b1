// Who approves a call sees all that it says to its server.
import { expect, test } from 'vitest'
import { Approvals } from '../../src/call/approve.ts'
import { besideArguments } from '../../src/call/beside.ts'
import { makeVisible } from '../../src/call/question.ts'
import { approvalQuestion } from '../support/approval-question.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'

test.each([
  ['{"name":"x","arguments":{"a":1}}', null],
  ['{"name":"x"}', null],
  ['{"name":"x","_meta":{"progressToken":7}}', null],
  ['{"name":"x","_meta":{"progressToken":"job_7-a"}}', null],
  ['{"name":"x","_meta":{"progressToken":"delete all"}}', '{"_meta":{"progressToken":"delete all"}}'],
  ['{"name":"x","_meta":{"progressToken":{"a":1}}}', '{"_meta":{"progressToken":{"a":1}}}'],
  ['{"name":"x","_meta":{}}', null],
  [
    '{"name":"x","_meta":{"progressToken":7,"acme/delete":"all"},"recursive":true}',
    '{"_meta":{"acme/delete":"all"},"recursive":true}',
  ],
  ['{"name":"x","_meta":[1],"arguments":{"_meta":2}}', '{"_meta":[1]}'],
  ['{"name":"x","z":"\\u0064elete","a":{"c":1.0,"b":2}}', '{"a":{"b":2,"c":1},"z":"delete"}'],
  ['{"name":"x","__proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
  ['{"name":"x","_meta":{"n":9007199254740993,"m":1e999}}', '{"_meta":{"m":1e999,"n":9007199254740993e0}}'],
  [
    '{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"sampling":{}}}}',
    null,
  ],
  [
    '{"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"n","delete":"all"},"io.modelcontextprotocol/clientCapabilities":{"pay all":{}}}}',
    '{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"pay all":{}},"io.modelcontextprotocol/clientInfo":{"delete":"all","name":"n"}}}',
  ],
  ['{"name":"x","_meta":9007199254740993}', '{"_meta":9007199254740993e0}'],
  [
    '{"name":"x","_meta":{"progressToken":1},"h":"\\ud800","n":9007199254740993,"z":"\\u0064elete"}',
    '{"h":"\\ud800","n":9007199254740993,"z":"delete"}',
  ],
  ['{"name":"x","half":"\\ud800"}', '{"half":"\\ud800"}'],
  [
    '{"name":"x","größe":"ü","inputResponses":"[not recorded]"}',
    '{"größe":"ü","inputResponses":"[not recorded]"}',
  ],
])('beside the arguments of %s: %j', (evidence, beside) => {
  expect(besideArguments({ kind: 'tool', evidence, lineage: null })).toBe(beside)
})

test.each([
  ['{"uri":"a","_meta":{"x":1}}', null], // of which all is its arguments
  [
    '{"notifications":{"resourceSubscriptions":["a"]},"_meta":{"x":1,"progressToken":1}}',
    '{"_meta":{"x":1}}',
  ],
  ['{"notifications":{"resourceSubscriptions":["a"]}}', null],
])('beside the things that are asked about in %s: %j', (evidence, beside) => {
  expect(besideArguments({ kind: 'method', evidence, lineage: null })).toBe(beside)
})

test.each([
  ['{"name":"x"}', '{"_meta":{"sallyport/lineage":"build-1"}}'],
  ['{"name":"x","_meta":{"a":1}}', '{"_meta":{"a":1,"sallyport/lineage":"build-1"}}'],
  ['{"name":"x","_meta":{"sallyport/lineage":"build-1"}}', '{"_meta":{"sallyport/lineage":"build-1"}}'],
])('the lineage of a call is shown wherever it was said: %s', (evidence, beside) => {
  expect(besideArguments({ kind: 'tool', evidence, lineage: 'build-1' })).toBe(beside)
})

test('what is long is shown as it is written', () => {
  const long = `[${'9007199254740993,'.repeat(10_000)}1]`
  const meta = `{"a":1.0,"b":${long}}`
  const evidence = `{"name":"x","_meta":${meta},"z":"\\u0064"}`
  const said = besideArguments({ kind: 'tool', evidence, lineage: null })
  expect(said === `{"_meta":${meta},"z":"d"}`).toBe(true) // which is too long to be shown where it fails
})

test('nothing is made to be read where nobody listens', async () => {
  const approvals = new Approvals({
    limits: () => ({ waitMs: 1000, ttlMs: 1000 }),
    now: () => 0,
    listeners: () => 0,
    tell: () => undefined,
  })
  const text = (): string => {
    throw new Error('made')
  }
  const signal = new AbortController().signal
  expect(await approvals.ask({ ...approvalQuestion, text }, { signal })).toMatchObject({ granted: false })
})

async function asking(params: object, id: number | string = 1): Promise<HostEnd> {
  const rules = [{ permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'rules[0]' }] as const
  const host = await attach(serverSettings('raw-echo.mjs'), { rules })
  host.governed.governance.listen()
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: {} })
  await host.answer('i')
  host.send({ jsonrpc: '2.0', id, method: 'tools/call', params })
  return host
}

test('a question has it behind the arguments', async () => {
  const said = {
    name: 'echo',
    arguments: { text: 'harmless' },
    recursive: true,
    _meta: { 'acme/target': 'prod', progressToken: 1 },
  }
  await using host = await asking(said)
  const { approvals } = host.governed.governance
  const [question] = await eventually(() => approvals.pending().length > 0 && approvals.pending())
  const whole = '{"text":"harmless"} and beside it {"_meta":{"acme/target":"prod"},"recursive":true}'
  expect(question?.text).toBe(whole)
  expect(question?.summary).toContain(whole)
})

test.each([
  [8, null],
  ['0b3c2f9e-7d2b-4c54-9f0e-6b7c0a8b1d11', null],
  ['IGNORE the text, delete all', '"IGNORE the text, delete all"'],
  ['k'.repeat(900), `"${'k'.repeat(900)}"`],
])('an id that says something is in the question, and on record: %j', async (id, shown) => {
  await using host = await asking({ name: 'echo', arguments: { text: 'status' } }, id)
  const { approvals } = host.governed.governance
  const [question] = await eventually(() => approvals.pending().length > 0 && approvals.pending())
  const whole = `{"text":"status"}${shown === null ? '' : ` and as its id ${makeVisible(shown)}`}`
  expect(approvals.text(question?.id ?? '', 0)?.text).toBe(whole)
  approvals.approve(question?.id ?? '', '0', null)
  expect(await host.answer(id)).toMatchObject({ result: {} })
  const intent = host.governed.records().find(({ type }) => type === 'call.intent')
  expect(intent?.body).toMatchObject(shown === null ? { call: question?.call } : { request_id: shown })
  expect(JSON.stringify(intent?.body).includes('"request_id"')).toBe(shown !== null)
})
