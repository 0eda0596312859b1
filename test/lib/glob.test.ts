import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPlainPath, matchesName, matchesPath } from '../../src/lib/glob.ts'
import { processorMs } from '../support/processor-time.ts'

const glob = fc.string({ unit: fc.constantFrom('a', '😀', '*', '?', '/'), maxLength: 8 })
const value = fc.string({ unit: fc.constantFrom('a', '😀', '/'), maxLength: 10 })

const pattern = (text: string, star: string, one: string): RegExp =>
  new RegExp(
    `^${text.replace(/\*+|\?/g, (run) => (run === '?' ? one : run.length > 1 ? '[^]*' : star))}$`,
    'u',
  )

test('a name glob means what the regular expression means', () => {
  fc.assert(
    fc.property(glob, value, (g, v) => {
      expect(matchesName(g, v)).toBe(pattern(g, '[^]*', '[^]').test(v))
    }),
    { numRuns: 5000 },
  )
})

test('a path glob means what the regular expression means', () => {
  fc.assert(
    fc.property(glob, value, (g, v) => {
      expect(matchesPath(g, v)).toBe(pattern(g, '[^/]*', '[^/]').test(v))
    }),
    { numRuns: 5000 },
  )
})

test('no pattern takes long, whatever it is held against', () => {
  const took = processorMs(() => {
    matchesName('*a'.repeat(200) + 'b', 'a'.repeat(10_000))
    matchesPath('**/a*'.repeat(50) + 'b', 'a/'.repeat(5000))
  })
  expect(took).toBeLessThan(2000)
})

test.each([
  ['/docs/*', '/docs/a', true],
  ['/docs/**', '/docs/../etc/passwd', false],
  ['/docs/**', '/docs/..\\etc', false],
  ['*', '..', false],
  ['/docs/**', '/docs/./a', false],
  ['/docs/**', '/docs//a', false],
  ['/docs/**', '/docs/a/', true],
  ['https://x/*', 'https://x/a', true],
  ['*', 'a\0b', false],
  ['v1..v2', 'v1..v2', true],
])('under %s the value %j can be compared: %s', (g, v, expected) => {
  expect(isPlainPath(g, v)).toBe(expected)
})
