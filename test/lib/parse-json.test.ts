// A key that is written with an escape is itself, whatever was said before.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseJson } from '../../src/lib/parse-json.ts'

/** What V8 reads wrongly once it has read `before`; `first` keeps each row’s objects apart from all others. */
const taught: readonly (readonly [before: string, text: string, key: string])[] = [
  ['"\\\\":1', '"\\"":2', '"'],
  ['"\\\\":1', '"\\u0070":2', 'p'],
  ['"t\\\\u0":1', '"t\\u0065xt":2', 'text'],
  ['"\\\\u00":1', '"\\u0070ath"\t:2', 'path'],
  ['"a\\\\u0":1', '"a\\u0000b" \n :2', 'a\0b'],
  ['"\\\\u005f_pr":1', '"\\u005f_proto__":2', '__proto__'],
  ['"\\\\":1', '"\\u0037":2', '7'],
]

test.each(taught)('behind %s, %s has the key %s', (before, text, key) => {
  const first = `"${text.length} ${key.charCodeAt(0)}":0`
  JSON.parse(`{${first},${before}}`)
  const value = parseJson(`[{${first},${text}}]`) as [object]
  expect(Object.entries(value[0]).at(key === '7' ? 0 : -1)).toEqual([key, 2])
  expect(Object.keys(value[0])).toHaveLength(2)
})

test('of a key twice, once with an escape, the last counts, in the place of the first', () => {
  const said = (text: string): string => JSON.stringify(parseJson(text))
  expect(said('{"a":1,"b":2,"\\u0061":3}')).toBe('{"a":3,"b":2}')
  expect(said('{"\\u0061":1,"b":2,"a":3}')).toBe('{"a":3,"b":2}')
  expect(said('{"\\u0061":1,"b":2,"\\u0061":3}')).toBe('{"a":3,"b":2}')
})

test('no depth of what is said is too much', () => {
  const depth = 100_000
  const text = `${'[{"\\u0061":'.repeat(depth)}1${'}]'.repeat(depth)}`
  let inner = parseJson(text)
  for (let n = 0; n < depth; n++) inner = (inner as [{ a: unknown }])[0].a
  expect(inner).toBe(1)
})

test('what stands beside such a key is read as it is everywhere', () => {
  const values =
    '{"\\u0061" : [ ] ,"b":[1.5e3,-0,1e400,true,false,null,"","\\n","long enough to be no copy",{}, [[1],2]],\t"__proto__":{"c" :-1.25E-2}}'
  expect(parseJson(values)).toEqual(JSON.parse(values))
  expect(Object.is((parseJson(values) as { b: number[] }).b[1], -0)).toBe(true)
  expect(Object.keys(parseJson(values) as object)).toEqual(['a', 'b', '__proto__'])
})

test('what is no JSON is none, however it is escaped', () => {
  for (const text of ['', '\\', '"\\', '"\\"', '{"\\u0061":1', '{"\\x":1}', '{"a\\":1}', '{"\\u0061"\\:1}'])
    expect(() => parseJson(text), text).toThrow(SyntaxError)
})

test('all that is written is read again', () => {
  const key = fc.oneof(fc.constantFrom('\\', '"', '\\u0', '\n', 'a\\', '__proto__', '7'), fc.string())
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(key, fc.integer(), fc.constantFrom(true, null)),
      fc.array(tie('value')),
      fc.dictionary(key, tie('value')),
    ),
  }))
  fc.assert(
    fc.property(value, fc.boolean(), (said, isWide) => {
      const text = JSON.stringify(said, null, isWide ? 1 : 0)
      expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(said))
    }),
    { numRuns: 2000 },
  )
})
