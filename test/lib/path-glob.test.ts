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
  ['/secret/**', '/se%E2%80%8Bcret/a', null],
  ['/secret/**', '/%7\u200b3ecret/a', null],
  ['/secret/**', '/%7%E2%80%8B3ecret/a', null],
  ['/secret/**', '/\uff53e\u200bcret/a', null],
  ['/ok/**', '/ok/.\u200b./secret', null],
  ['/ok/**', '/ok/\uff0e\u200b\uff0e/secret', null],
  ['/ok/**', '/ok/\u2764\ufe0f.md', true],
  ['/ok/**', '/secret/\u2764\ufe0f.md', false],
  ['*.pem', 'a.pe\u2060m', null],
  ['se\u200bcret', 'se\u200bcret', true],
  ['/secret/**', 'secret/a', null],
  ['/secret/**', '~/a', null],
  ['/secret/**', '', null],
  ['secret/**', '/w/secret/a', null],
  ['**/secret/**', '/w/secret/a', true],
  ['*.pem', '/w/a.pem', null],
  ['*.pem', '/w/a.txt', false],
  ['*.txt', 'a.txt', true],
  ['**/.env', '.env', null],
  ['**/.env', 'config/.env', true],
  ['**/.env', '.environment', false],
  ['/srv/**/.env', '/srv/.env', null],
  ['/srv/**/a/**/b', '/srv/a/b', null],
  ['/srv/**/a/**/b', '/srv/x/a/y/b', true],
  ['/srv/**/a/**/b', '/srv/a/c', false],
  ['/srv/secret', '/srv/secret/', null],
  ['/srv/secret/', '/srv/secret', null],
  ['/srv/*', '/srv/secret/', null],
  ['/srv/*', '/srv/secret/x', false],
  ['/secret/**', '/secret', false],
  ['/docs/**', '/docs/', true],
  ['.env', './.env', null],
  ['.env', '././/.env', null],
  ['.env', '.env/', null],
  ['*.key', 'y.key/', null],
  ['*.key', './y.key', null],
  ['secret', 'other/', false],
  ['rm *', 'rm -rf x', true],
  ['rm *', 'rm -rf /', null],
  ['rm *', 'ls /', false],
  ['rm *', 'rm%20-rf%20%2f', null],
  ['rm *', 'rm \uff0f', null],
  ['rm ?', 'rm /', null],
  ['*DROP*', '/* c */ DROP t', null],
  ['**DROP**', '/* c */ DROP t', true],
  ['*@evil.com', 'a/b@evil.com', null],
  ['http*evil*', 'https://evil.com/x', null],
  ['.env', '/w/.env', false],
  ['100%25', '100%25', true],
  ['*', 'plain', true],
  ['urn:secret:*', 'urn:secret:a', true],
  ['urn:secret:*', 'URN:secret:a', null],
  ['urn:secret:*', ' urn:secret:a', null],
  ['urn:secret:*', 'u\trn:sec\nret:a', null],
  ['urn:secret:*', '\uff35RN:secret:a', null],
  ['urn:secret:*', 'urn:%73ecret:a', null],
  ['urn:secret:*', 'urn:SECRET:a', false],
  ['urn:secret:*', 'urn:other:a', false],
  ['urn:secret:*', 'no address', false],
  ['note:secret/*', 'NOTE:secret/a', null],
  ['note:*', 'note:caf\u00e9 "{a}"', true],
  ['Note:*', 'Note:buy milk', true],
  ['Note:*', 'note:buy milk', null],
  ['C:*', 'C:a', true],
])('%s of %j: %s', (glob, value, expected) => {
  expect(matchesPlainly(glob, value)).toBe(expected)
})

test.each(['200b', '200d', '2060', 'feff', 'ad', 'fe0f', '34f', 'e0061'])(
  'who drops U+%s, which is not shown, is told what its glob says of the rest, or nobody is',
  (hex) => {
    const unseen = String.fromCodePoint(Number(`0x${hex}`))
    expect(matchesPlainly('/secret/**', `/se${unseen}cret/a`)).toBeNull()
    expect(matchesPlainly('/secret/**', `/other${unseen}/a`)).toBe(false)
    expect(matchesPlainly('/other/**', `/other${unseen}/a`)).toBeNull()
    expect(matchesPlainly('/other/**', `/other/${unseen}a`)).toBe(true)
  },
)

test.each(['20', '9', 'a', 'd', 'b', '1f', '85', 'a0', '2003', '2028', '3000', 'feff'])(
  'who drops U+%s at the ends is told what its glob says of the rest, or nobody is',
  (hex) => {
    const blank = String.fromCodePoint(Number(`0x${hex}`))
    const spellings = [`main${blank}`, `${blank}main`, `${blank} main ${blank}${blank}`]
    for (const value of [...spellings, ...spellings.map(encodeURIComponent)]) {
      expect(matchesPlainly('main', value)).toBeNull()
      expect(matchesPlainly('ma*', value)).not.toBe(false)
      expect(matchesPlainly('other', value)).toBe(false)
      expect(matchesPlainly('**', value)).toBe(true)
    }
    for (const value of [`/ok/..${blank}`, `/ok/..${encodeURIComponent(blank)}`])
      expect(matchesPlainly('/ok/**', value)).toBeNull()
    expect(matchesPlainly('secret/**', `${blank}/w/secret/a`)).toBeNull()
    expect(matchesPlainly('/ok/**', `/ok/a${blank}b`)).toBe(true)
  },
)

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
