// A long result says the same of itself as a short one, and is not read for it.
import { expect, test } from 'vitest'
import { resultHead, textsOf } from '../../../src/supervisor/message/head.ts'
import { readShallow } from '../../../src/supervisor/message/shallow.ts'
import { kindOf } from '../../../src/supervisor/message/tool-result.ts'

const padding = `"padding":[${'{"é":1},'.repeat(60_000)}{}]`
/** The same object short and long. */
const both = (members: string): readonly [string, string] => [
  `{${members}}`,
  `{${padding}${members === '' ? '' : ','}${members}}`,
]

test.each([
  ['"isError":true', 'tool-error'],
  ['"isError":false', 'result'],
  ['"isError":"true"', 'result'],
  ['"\\u0069sError":true', 'tool-error'],
  ['"resultType":"input_required"', 'input-required'],
  ['"resultType":"input\\u005frequired"', 'input-required'],
  ['"resultType":"task"', 'result'],
  ['"isError":false,"isError":true', 'tool-error'],
  ['"structuredContent":{"isError":true}', 'result'],
  ['', 'result'],
])('%s makes it a %s', (members, kind) => {
  for (const json of both(members)) expect(kindOf(json)).toBe(kind)
})

test('what is long within it is not read', () => {
  const keys = new Set(['a', 'b'])
  expect(readShallow(`{${padding},"a":{"c":["é"]},"b":"${'x'.repeat(70_000)}"}`, keys)).toEqual({
    a: { c: ['é'] },
    b: null,
  })
  expect(readShallow(`[${'1,'.repeat(200_000)}1]`, keys)).toBeNull()
})

test.each([
  [
    '"content":[{"type":"text","text":"one \\"é\\u00e9"},{"type":"image"},7,{"text":"two"},{"text":3}]',
    'one "éé\ntwo',
  ],
  ['"content":[]', ''],
  ['"content":{"text":"x"}', ''],
  ['"content":[{"text":"a","text":"b"}]', 'b'],
  ['', ''],
])('its texts are those of %s', (members, texts) => {
  for (const json of both(members)) expect(textsOf(json)).toBe(texts)
})

test('its head is cut from the texts of its first blocks', () => {
  const block = `{"type":"text","text":"${'é'.repeat(1000)}"}`
  const json = `{"content":[${Array.from({ length: 500 }, () => block).join()}],"isError":true}`
  const { data, text } = resultHead(json, 5000)
  expect(data).toEqual({ content: [{ type: 'text', text }], isError: true })
  expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThanOrEqual(5000)
  expect(text.startsWith(`${'é'.repeat(1000)}\né`)).toBe(true)
  expect(text.length).toBeGreaterThan(2000)
})
