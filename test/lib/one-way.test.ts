// What two readers could take differently has no reading; what a double does not hold is kept as it is written.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalize } from '../../src/call/canonical.ts'
import {
  decimal,
  inexactIn,
  listIn,
  parseOneWay,
  parseWritten,
  rounded,
  WrittenNumber,
} from '../../src/lib/one-way.ts'

test.each([
  ['a key twice', '{"a":1,"a":1}'],
  ['a key twice, once escaped', '{"a":1,"\\u0061":2}'],
  ['a key twice, deep within', '[{"a":[{"b":{"c":1,"d":2,"c":1}}]}]'],
  ['a letter twice, beyond ASCII', '{"é":1,"é":2}'],
])('%s has no reading', (_what, json) => {
  expect(parseOneWay(json)).toBeNull()
})

test.each(['{"a":1,"b":{"a":1}}', '{"é":1,"è":2,"Ģ":3}', '"Ģ"', '1', '[]', '{"__proto__":{"a":1}}'])(
  '%s is what it is',
  (json) => {
    expect(JSON.stringify(parseOneWay(json))).toBe(json)
  },
)

test('numbers that a double does not hold stay apart, and are doubles to whoever writes them out', () => {
  const [one, other] = ['18446744073709551615', '18446744073709551616'].map((n) => `{"maximum":${n}}`)
  const [a, b] = [parseOneWay(one ?? ''), parseOneWay(other ?? '')]
  expect(canonicalize(a)).not.toBe(canonicalize(b))
  expect(canonicalize(a)).toBe(canonicalize(parseOneWay('{"maximum":18446744073709551615.0}')))
  expect(rounded(a)).toEqual({ maximum: 18446744073709552000 })
  expect(canonicalize(parseOneWay('{"a":1e400}'))).not.toBe(canonicalize(parseOneWay('{"a":1e401}')))
  expect(canonicalize(parseOneWay('{"a":1.50}'))).toBe('{"a":1.5}')
})

test.each([
  ['{"n":1,"tools":[ {"a":1} ,"é"]}', ['{"a":1}', '"é"']],
  ['{"tools":[]}', []],
  ['{"tools":[],"tools":[1]}', null],
  ['{"tools":{}}', null],
  ['[]', null],
  ['1', null],
])('the list in %s', (json, expected) => {
  expect(listIn(json, 'tools')).toEqual(expected)
})

/** A text, and what it says: said with it, since V8's own sources of numbers are at times not there behind an escaped key. */
interface Said {
  readonly json: string
  readonly value: unknown
}

const numberOf = (written: string): Said => {
  const read = Number(written)
  const isHeld = decimal(written) === decimal(String(read))
  return { json: written, value: isHeld ? read : new WrittenNumber(written, read) }
}

const listOf = (all: readonly Said[]): Said => ({
  json: `[${all.map(({ json }) => json).join(', ')}]`,
  value: all.map(({ value }) => value),
})

const objectOf = (all: readonly (readonly [string, Said])[]): Said => ({
  json: `{${all.map(([key, { json }]) => `${JSON.stringify(key)}: ${json}`).join()}}`,
  value: Object.fromEntries(all.map(([key, { value }]) => [key, value])),
})

test('the numbers that a double does not hold are found wherever they stand, and nothing else is', () => {
  const number = fc.constantFrom(
    '1',
    '-0',
    '0.1',
    '1e5',
    '1E+5',
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '0.1000000000000000055511151231257827',
    '1e400',
    '1.50',
    '100000000000000000000',
  )
  const text = fc.oneof(
    fc.constantFrom('\\"9007199254740993', '\\\\', '1e400', '"', '__proto__', '7', 'true'),
    fc.string(),
  )
  const { said } = fc.letrec<{ said: Said }>((tie) => ({
    said: fc.oneof(
      { maxDepth: 4 },
      number.map(numberOf),
      fc
        .oneof(text, fc.constantFrom(true, false, null))
        .map((value) => ({ json: JSON.stringify(value), value })),
      fc.array(tie('said')).map(listOf),
      fc.uniqueArray(fc.tuple(text, tie('said')), { selector: ([key]) => key }).map(objectOf),
    ),
  }))
  fc.assert(
    fc.property(said, ({ json, value }) => {
      expect(parseWritten(json)).toEqual(value)
      for (const { start, end, written: digits } of inexactIn(json))
        expect(json.slice(start, end)).toBe(digits)
    }),
    { numRuns: 500 },
  )
})
