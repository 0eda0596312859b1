import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesPath } from '../../src/lib/glob.ts'
import { matchesPlainly } from '../../src/lib/path-glob.ts'
import { processorMs } from '../support/processor-time.ts'

test.each([
  ['/ok/**', '/ok/a', true],
  ['/ok/**', '/other', false],
  ['/ok/**', '/ok/%2e%2e/secret', null],
  ['/ok/**', '/ok/%2E%2E%2fsecret', null],
  ['/ok/**', '/ok/%252e%252e/secret', null],
  ['/ok/**', '/ok/%c0%ae%c0%ae/secret', null],
  ['/ok/**', '/ok/%00', null],
  ['/ok/**', '/ok/\u2025/secret', null],
  ['/ok/**', '/ok/\uff0e\uff0e\uff0fsecret', null],
  ['/ok/**', '/ok/%ef%bc%8e%ef%bc%8e/secret', null],
  ['/ok/*', '/ok/a%2fb', null],
  ['/ok/**', '/ok/100%', true],
  ['/ok/**', '/ok/100%25 sure', true],
  ['/ok/**', '/ok/caf\u00e9/\ufb01le', true],
  ['/ok/**', `/ok/${'%25'.repeat(5)}41`, true],
  ['/secret/**', '/secret/a', true],
  ['/secret/**', '/%73ecret/a', null],
  ['/secret/**', '/\u017fecret/a', null],
  ['/secret/**', '/\uff53ecret/a', null],
  ['/secret/**', 'secret/a', null],
  ['/secret/**', '~/a', null],
  ['/secret/**', '', null],
  ['secret/**', '/w/secret/a', null],
  ['**/secret/**', '/w/secret/a', true],
  ['*.pem', '/w/a.pem', false],
  ['.env', '/w/.env', false],
  ['100%25', '100%25', true],
  ['*', 'plain', true],
])('%s of %j: %s', (glob, value, expected) => {
  expect(matchesPlainly(glob, value)).toBe(expected)
})

test('what nobody reads otherwise is told as its glob says', () => {
  const value = fc
    .string({ unit: fc.constantFrom('a', 'b', '.x', '/a'), maxLength: 8 })
    .map((text) => `/${text}`)
  const glob = fc
    .string({ unit: fc.constantFrom('a', 'b', '*', '?', '/'), maxLength: 6 })
    .map((text) => `/${text}`)
  fc.assert(
    fc.property(glob, value, (g, v) => {
      const told = matchesPlainly(g, v)
      expect(told === null || told === matchesPath(g, v)).toBe(true)
    }),
  )
})

test('no value takes long, whatever it is', () => {
  const took = processorMs(() => {
    for (const value of ['\ufdfa'.repeat(60_000), '%25'.repeat(20_000), '\ufdfa'.repeat(5_000_000)])
      matchesPlainly('/**/a*'.repeat(20), `/${value}`)
  })
  expect(took).toBeLessThan(5000)
})
