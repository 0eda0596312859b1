// A person is asked what every host reads in a question, or not at all.
import { expect, test } from 'vitest'
import { gateOf } from '../../../src/call/gate.ts'
import { readEnvelope } from '../../../src/supervisor/message/envelope.ts'
import { judgeInput } from '../../../src/supervisor/questions/input-required.ts'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

const elicitation = { enabled: true, timeoutMs: 60_000, queue: 16 }
const plain = '"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}'

const unclear: readonly (readonly [string, string])[] = [
  ['a mode in another case', `"mode":"form","Mode":"url","url":"https://phish.example/",${plain}`],
  ['two modes', `"mode":"url","mode":"form","url":"https://phish.example/",${plain}`],
  ['a mode that is none', `"mode":"URL","url":"https://phish.example/",${plain}`],
  ['a mode that is no text', `"mode":["url"],${plain}`],
  ['a form of a prototype', `"__proto__":{"requestedSchema":{"properties":{"password":{}}}},${plain}`],
  ['two forms', `"requestedSchema":{"properties":{"password":{}}},${plain}`],
  ['a form in another case', `"requestedschema":{"properties":{"password":{}}},${plain}`],
  ['two lists of fields', '"requestedSchema":{"properties":{"password":{}},"properties":{"name":{}}}'],
  [
    'a list of fields in full width',
    '"requestedSchema":{"ｐroperties":{"password":{}},"properties":{"name":{}}}',
  ],
  ['a field twice, deeper', '"requestedSchema":{"properties":{"a":{"title":"password","title":"name"}}}'],
  ['a title in another case', '"requestedSchema":{"properties":{"a":{"Title":"password","title":"name"}}}'],
  [
    'more keys than anybody looks at',
    `${Array.from({ length: 100 }, (_, n) => `"ｆ${n}":1`).join()},${plain}`,
  ],
  ['an address, and no mode', '"url":"https://phish.example/","elicitationId":"e","message":"Go"'],
  ['an address, and a mode that is null', '"mode":null,"url":"https://phish.example/","message":"Go"'],
  ['a key that is longer than any', `"${'e'.repeat(300)}":1,${plain}`],
  ['a key with what is not shown', `"mes\u200bsage":"password",${plain}`],
]
const clear: readonly (readonly [string, string])[] = [
  ['a form', plain],
  ['a mode that is empty', `"mode":"","url":"",${plain}`],
  ['a mode that is null', `"mode":null,${plain}`],
  ['a form that says so', `"mode":"form",${plain}`],
  ['an address', '"mode":"url","message":"Go","elicitationId":"e","url":"https://good.example/"'],
  ['what nobody knows', `"x":1,"Y":2,${plain}`],
]

const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

test.each([
  ...unclear.map((one) => [...one, 'answer'] as const),
  ...clear.map((one) => [...one, 'pass'] as const),
])('in a result, %s', (_what, params, action) => {
  const asks = `{"a":{"method":"elicitation/create","params":{${params}}}}`
  const line = latin1(
    `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":${asks}}}`,
  )
  const envelope = readEnvelope(line, 0, line.length)
  if (envelope.kind !== 'response' || envelope.result === null) throw new Error('that is no result')
  const host = { waiting: () => 0, declared: () => ({ form: true, url: true, sampling: true }) }
  const verdict = judgeInput(
    line,
    envelope.result,
    serverSettings('echo.mjs', { elicitation }),
    gateOf([]),
    host,
  )
  expect(verdict.action).toBe(action)
})

test('in the era of handshakes, each of them', async () => {
  await using host = await attach(serverSettings('raw-script.mjs', { elicitation }))
  const capabilities = { elicitation: { form: {}, url: {} } }
  const asks = [...unclear, ...clear].map(
    ([, params], n) => `{"jsonrpc":"2.0","id":"q${n}","method":"elicitation/create","params":{${params}}}\n`,
  )
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
  const replies = [`${JSON.stringify({ jsonrpc: '2.0', id: 'i', result })}\n`, ...asks].join('')
  const _meta = { '@reply': Buffer.from(replies).toString('base64') }
  const clientInfo = { name: 'x', version: '1' }
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo, _meta }
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params })
  await host.answer('i')
  await eventually(() => host.eventsOf('session/declined').length >= unclear.length)
  const asked = host.lines.filter((line) => line.includes('elicitation/create'))
  expect(asked.map((line) => JSON.parse(line).id)).toEqual(clear.map((_, n) => `q${unclear.length + n}`))
  expect(host.eventsOf('session/declined')).toHaveLength(unclear.length)
})
