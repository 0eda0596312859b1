// A call is made again where everything its server reads is the same; hosts count their requests in one member.
import { expect, test } from 'vitest'
import { repeatDigest as digest } from '../../src/call/repeat.ts'

const params = (meta: string): string => `{"name":"é","arguments":{"a":1},"_meta":{${meta}}}`

const repeatDigest = (
  bytes: string,
  evidence = bytes,
  lineage: string | null = null,
  id: string | null = null,
): string => digest({ bytes, evidence, lineage, id })

test.each([
  ['a number', '1', '2'],
  ['a short name', '"a-1"', '"b_2"'],
  ['a UUID', '"0b3c2f9e-7d2b-4c54-9f0e-6b7c0a8b1d11"', '"5f9e2f9e-7d2b-4c54-9f0e-6b7c0a8b1d11"'],
])('a call is the same whatever number its host gives it: %s', (_what, one, other) => {
  const [first, again] = [one, other].map((token) => params(`"k":"v","progressToken":${token}`))
  expect(repeatDigest(first ?? '')).toBe(repeatDigest(again ?? ''))
})

const usual = params('"progressToken":1')
test.each([
  ['other arguments', usual.replace('"a":1', '"a":2')],
  ['arguments that are spelt otherwise', usual.replace('"a":1', '"a":1.0')],
  ['white space', usual.replace('"a":1', '"a": 1')],
  ['another member', usual.replace(',"_meta"', ',"task":{},"_meta"')],
  ['more in its _meta', params('"progressToken":1,"mode":"force"')],
  ['no token', params('')],
  ['a token that says something', params('"progressToken":"delete it all, please"')],
  ['a token that is long', params(`"progressToken":"${'a'.repeat(41)}"`)],
  ['a token that is an object', params('"progressToken":{"a":1}')],
  ['a token within its arguments', usual.replace('"a":1', '"a":1,"progressToken":2')],
])('a call with %s is another one', (_what, other) => {
  expect(repeatDigest(other)).not.toBe(repeatDigest(usual))
})

test('keys are read as they were written, whatever letters are in them', () => {
  const odd = params('"Ģ":"漢","\\u005f":1,"progressToken":1')
  expect(repeatDigest(odd)).toBe(repeatDigest(odd.replace('"progressToken":1', '"progressToken":2')))
  expect(repeatDigest(odd)).not.toBe(repeatDigest(odd.replace('漢', '字')))
})

test('params that are nothing but empty have a digest, too', () => {
  expect(repeatDigest('{}')).toMatch(/^[0-9a-f]{64}$/)
})

test('a call with a person’s answers is what was answered, whatever its token, and keeps them out of a plain digest', () => {
  const bytes = `{"name":"ask","inputResponses":{"a":"secret"},"_meta":{"progressToken":1}}`
  const evidence = bytes.replace('secret', '[withheld]')
  const answered = repeatDigest(bytes, evidence)
  expect(repeatDigest(bytes.replace('secret', 'other!'), evidence)).not.toBe(answered)
  expect(repeatDigest(bytes)).not.toBe(answered)
  expect(answered).not.toBe(repeatDigest(evidence))
})

test('a call of another lineage is another call', () => {
  const of = (lineage: string | null): string => repeatDigest('{"name":"a"}', undefined, lineage)
  expect(new Set([of(null), of(''), of('a'), of('b')]).size).toBe(4)
})

test('a call with an id that says something is another call for each that it says', () => {
  const as = (id: string | null): string => repeatDigest('{"name":"a"}', undefined, null, id)
  expect(new Set([as(null), as('"delete it"'), as('"keep it"')]).size).toBe(3)
})
