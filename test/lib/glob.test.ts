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

/** The same, of the segments one by one. */
function hasPlainSegments(glob: string, value: string): boolean {
  const segments = value.split(/[/\\]/)
  if (value.includes('\0') || segments.includes('..')) return false
  if (!glob.includes('/') || glob.includes('://')) return true
  const inner = segments.slice(segments[0] === '' ? 1 : 0, segments.at(-1) === '' ? -1 : undefined)
  return !value.includes('\\') && !inner.includes('.') && !inner.includes('')
}

test('a path is plain where its segments are', () => {
  const part = fc.constantFrom('/', '\\', '.', '..', 'a', '\n', '\0', '…')
  const glob = fc.constantFrom('*.pem', '/**', 'file:///**')
  fc.assert(
    fc.property(glob, fc.array(part, { maxLength: 8 }), (g, parts) => {
      expect(isPlainPath(g, parts.join(''))).toBe(hasPlainSegments(g, parts.join('')))
    }),
    { numRuns: 5000 },
  )
})

test('to look at millions of segments takes less than to list them', () => {
  const value = '/a'.repeat(2_000_000)
  const least = (work: () => unknown) => Math.min(...[1, 2, 3].map(() => processorMs(() => void work())))
  expect(least(() => isPlainPath('/**', value))).toBeLessThan(least(() => value.split('/')))
})
