// What two readers could take differently has no reading; what a double does not hold is kept as it is written.
import { expect, test } from 'vitest'
import { canonicalize } from '../../src/call/canonical.ts'
import { listIn, parseOneWay, rounded } from '../../src/lib/one-way.ts'

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
