// JSON text is spliced in as it is, wherever it stands, and everything else is serialized the same with and without it.
import { expect, test } from 'vitest'
import { RawJson, stringifyRaw } from '../../src/lib/raw-json.ts'

const values: readonly unknown[] = [
  null,
  undefined,
  'é"\n\u2028\ud800',
  -0,
  Number.NaN,
  [],
  {},
  [undefined, () => 1, { a: undefined, b: [Infinity] }],
  { a: { b: [1, 'x', { c: null, 2: false }] }, '"': true },
]

test.each(values)('%j is serialized as JSON has it, alone and beside raw text', (value) => {
  const text = JSON.stringify(value) ?? 'null'
  expect(stringifyRaw(value)).toBe(text)
  expect(stringifyRaw([value, new RawJson('1.0')])).toBe(`[${text},1.0]`)
})

test('raw text stays as it was written, at the top and in depth', () => {
  expect(stringifyRaw(new RawJson('{"b":1e2, "a":1}'))).toBe('{"b":1e2, "a":1}')
  expect(stringifyRaw({ x: [{ y: new RawJson('12345678901234567890') }], z: 1 })).toBe(
    '{"x":[{"y":12345678901234567890}],"z":1}',
  )
})
