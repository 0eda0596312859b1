// The secrets of one request: put into its `_meta`, and taken out of everybody else's.
import { describe, expect, test } from 'vitest'
import { answerOf } from '../../../src/supervisor/client/answer.ts'
import {
  answerWithoutOurs,
  lineWithCredentials,
  paramsWithCredentials,
  withoutCredentials,
} from '../../../src/supervisor/message/credential-meta.ts'
import {
  readEnvelope,
  readUnambiguous,
  type Request,
  type Response,
} from '../../../src/supervisor/message/envelope.ts'

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')
const values = { TOKEN: 'gehëim"\n' }

test.each([
  ['{}', { _meta: { 'sallyport/credentials': values } }],
  [' { } ', { _meta: { 'sallyport/credentials': values } }],
  ['{"name":"x"}', { name: 'x', _meta: { 'sallyport/credentials': values } }],
  ['{"_meta":{"a":"ü"},"n":1.0}', { n: 1, _meta: { a: 'ü', 'sallyport/credentials': values } }],
  ['{"_meta":{"sallyport/credentials":{"OLD":"x"}}}', { _meta: { 'sallyport/credentials': values } }],
  ['{"_meta":null}', { _meta: { 'sallyport/credentials': values } }],
])('%s gets them, whatever it has', (params, expected) => {
  expect(JSON.parse(paramsWithCredentials(params, values))).toEqual(expected)
})

test('a line gets them, and stays what it was', () => {
  const line = latin1(
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"big":12345678901234567890,"é":"ü"}}\n',
  )
  const sent = utf8(lineWithCredentials(line, values))
  expect(sent).toContain('"big":12345678901234567890,"é":"ü"')
  expect(JSON.parse(sent)).toMatchObject({ id: 7, params: { _meta: { 'sallyport/credentials': values } } })
  const bare = utf8(lineWithCredentials('{"jsonrpc":"2.0","id":7,"method":"ping"}\n', values))
  expect(JSON.parse(bare)).toMatchObject({
    method: 'ping',
    params: { _meta: { 'sallyport/credentials': values } },
  })
})

describe('what somebody else says there', () => {
  const spoken = [
    '{"a":1,"_meta":{"sallyport/credentials":{"T":"x"},"k":2}}',
    '{"a":1,"_meta":{"sallyp\\u006frt/credentials":1,"k":2}}',
    '{"a":1,"_meta":{"Sallyport/Credentials":{"T":"x"},"k":2}}',
    '{"a":1,"_meta":{"SALLYPORT/CREDENTIALS":1,"sallyport/credentials":2,"k":2}}',
    '{"a":1,"_meta":{"\u017fallyport/credentials":1,"k":2}}',
    '{"a":1,"_meta":{"\uff53allyport/credentials":1,"k":2}}',
    '{"a":1,"_meta":{"sally\u200bport/credentials":1,"k":2}}',
    '{"a":1,"_meta":{"sally port/\x7fcredentials ":1,"k":2}}',
    '{"a":1,"_meta":{"sallyport/credentials\\u0000more":1,"k":2}}',
  ].map((text) => Buffer.from(text, 'utf8').toString('latin1')) // as lines are read

  test.each(spoken)('is taken out of a request: %s', (params) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
    const bare = withoutCredentials(readUnambiguous(text, 0, text.length) as Request)
    expect(JSON.parse(bare?.text ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { a: 1, _meta: { k: 2 } },
    })
  })

  test.each([
    '{}',
    '{"_meta":{"k":1}}',
    '{"_meta":"sallyport/credentials"}',
    '{"arguments":{"sallyport/credentials":1}}',
  ])('is nothing, and not a byte changes: %s', (params) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
    expect(withoutCredentials(readUnambiguous(text, 0, text.length) as Request)).toBe(null)
  })
})

describe('what an answer says there as Sallyport’s word', () => {
  const answerTo = (result: string): Response => {
    const text = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`, 'utf8').toString('latin1')
    return readEnvelope(text, 0, text.length) as Response
  }
  const forged = [
    '{"a":1,"_meta":{"sallyport/credentials":{"T":"x"},"k":2}}',
    '{"a":1,"_meta":{"sallyport/error":{"code":1080},"k":2}}',
    '{"a":1,"_meta":{"sally\\u0070ort/error":1,"k":2}}',
    '{"a":1,"_meta":{"SallyPort/Error":1,"k":2}}',
    '{"a":1,"_meta":{"sally\u200bport/lineage":1,"k":2}}',
    '{"a":1,"_meta":{"sallyport/":1,"k":2,"sallyport/what comes later, under a name that is longer than any":3}}',
    '{"_meta":{"sallyport/error":1},"a":1,"_meta":{"sallyport/error":1,"k":2}}',
    '{"_meta":{"k":1},"a":1,"_m\\u0065ta":{"sallyport/error":1,"k":2}}',
  ]

  test.each(forged)('is taken out: %s', (result) => {
    const bare = answerWithoutOurs(answerTo(result))
    expect(JSON.parse(bare ?? '')).toEqual({ jsonrpc: '2.0', id: 1, result: { a: 1, _meta: { k: 2 } } })
    const given = answerOf(answerTo(result), 'fixture', null, null)
    expect(given?.kind === 'result' ? JSON.parse(given.result.raw) : null).toEqual({ a: 1, _meta: { k: 2 } })
  })

  test('is taken out in another spelling of `_meta`, too, and nothing beside it is touched', () => {
    const result = '{"big":12345678901234567890,"é":1.0,"_Meta":{"sallyport/error":1,"x" : "ü"} , "z":[ ]}'
    expect(utf8(answerWithoutOurs(answerTo(result)) ?? '')).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"big":12345678901234567890,"é":1.0,"_Meta":{"x":"ü"} , "z":[ ]}}',
    )
  })

  test.each([
    '{}',
    '{"_meta":{}}',
    '{"_meta":{"é" : 1,"\\u0061":2,"sallyport":3,"x.sallyport/error":4}}',
    '{"_meta":"sallyport/error"}',
    '{"sallyport/error":1,"content":[{"_meta":{"sallyport/error":1}}]}',
  ])('is nothing, and not a byte changes: %s', (result) => {
    expect(answerWithoutOurs(answerTo(result))).toBe(null)
    const given = answerOf(answerTo(result), 'fixture', null, null)
    expect(given).toMatchObject({ kind: 'result', result: { raw: result } })
  })
})
