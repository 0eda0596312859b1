// What texts end with is cut off, in time that no run of it within them makes longer.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesPlainly } from '../../src/lib/path-glob.ts'
import { withoutTrailing } from '../../src/lib/trailing.ts'
import { matchesUri } from '../../src/lib/uri-glob.ts'
import { processorMs } from '../support/processor-time.ts'

test('is what the expression for it cuts off', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', '.', '%2e', '/'), maxLength: 8 }), (text) => {
      expect(withoutTrailing(text, ['/'])).toBe(text.replace(/\/+$/, ''))
      expect(withoutTrailing(text, ['.', '%2e'])).toBe(text.replace(/(?:\.|%2e)+$/, ''))
    }),
  )
})

test.each([
  ['a path', () => matchesPlainly('*.md', `${'/'.repeat(1_000_000)}x`)],
  ['the host of an address', () => matchesUri('note://x/*', `note://${'.'.repeat(500_000)}b/y`)],
])('a run of what is cut off elsewhere in %s takes no time to speak of', (_what, look) => {
  expect(processorMs(() => void look())).toBeLessThan(1000)
})
