// The secrets of one request: put into its `_meta`, and taken out of everybody else's.
import { describe, expect, test } from 'vitest'
import {
  answerWithoutCredentials,
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

  test('is taken out of an answer', () => {
    const text =
      '{"jsonrpc":"2.0","id":1,"result":{"_meta":{"sallyport/credentials":{"T":"x"}},"content":[]}}'
    const bare = answerWithoutCredentials(readEnvelope(text, 0, text.length) as Response)
    expect(JSON.parse(bare ?? '')).toEqual({ jsonrpc: '2.0', id: 1, result: { _meta: {}, content: [] } })
    const plain = '{"jsonrpc":"2.0","id":1,"result":{}}'
    expect(answerWithoutCredentials(readEnvelope(plain, 0, plain.length) as Response)).toBe(null)
  })
})
