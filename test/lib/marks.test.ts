// Long runs of combining marks: nobody waits for them to be normalized, and nothing passes by them.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { foldKey } from '../../src/lib/key-folding.ts'
import { hasLongRun, normalized } from '../../src/lib/marks.ts'
import { matchesPlainly } from '../../src/lib/path-glob.ts'
import { matchesUri } from '../../src/lib/uri-glob.ts'
import { processorMs } from '../support/processor-time.ts'

const run = (length: number): string => `a${'\u0300\u0316'.repeat(length / 2)}`

test('a run of 30 is normalized as it is, and a longer one without what is too much', () => {
  expect(hasLongRun(run(30))).toBe(false)
  expect(normalized(run(30), 'NFKC')).toBe(run(30).normalize('NFKC'))
  expect(hasLongRun(run(32))).toBe(true)
  expect(normalized(`${run(32)}b`, 'NFKC')).toBe(`${run(30)}b`.normalize('NFKC'))
})

test('other text is normalized as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(normalized(text, 'NFKC')).toBe(text.normalize('NFKC'))
      expect(normalized(text, 'NFKD')).toBe(text.normalize('NFKD'))
    }),
  )
})

test('every letter that becomes a mark at its beginning counts as one', () => {
  const isMark = /^\p{M}/u
  const all = Array.from({ length: 0x110000 }, (_, code) => code).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  )
  const become = all.filter((code) => {
    const [before, after] = [String.fromCodePoint(code), String.fromCodePoint(code).normalize('NFKD')]
    return !isMark.test(before) && isMark.test(after)
  })
  for (const code of become) {
    const letters = String.fromCodePoint(code).repeat(31)
    // What a starter follows at once is in no run
    expect(hasLongRun(letters) || !/^\p{M}+$/u.test(letters.normalize('NFKD'))).toBe(true)
  }
})

describe('takes no time to speak of', () => {
  const long = run(1_000_000)
  test.each([
    ['a key', () => foldKey(long)],
    ['a key of letters that become marks', () => foldKey(`a${'\uff9e\u0334'.repeat(250_000)}`)],
    ['short runs', () => hasLongRun(`a${'\u0300'.repeat(28)}`.repeat(90_000))],
    ...[
      ['that become long', '\ufdfa'.repeat(500)],
      ['with marks', `a${'\u0300'.repeat(28)}`.repeat(16)],
      ['with what is not shown', '\u200b'.repeat(1000)],
    ].map(([what, key]) => [
      `9000 keys ${what}`,
      () => Array.from({ length: 9000 }, (_, n) => foldKey(`${key}${n}`)),
    ]),
    ['a path', () => matchesPlainly('/**', `/${run(60_000)}`)],
    ['an escaped path', () => matchesPlainly('/**', encodeURIComponent(run(9000)))],
    ['an address', () => matchesUri('note:///**', `note:///${run(8000)}`)],
  ] as readonly [string, () => unknown][])('%s', (_what, look) => {
    expect(processorMs(() => void look())).toBeLessThan(1000)
  })
})

test('what it is to those who normalize it is unclear, so that no rule lets it pass', () => {
  expect(matchesPlainly('/a/**', `/a/${run(32)}`)).toBeNull()
  expect(matchesPlainly('/a/**', `/a/${run(30).slice(1)}`)).not.toBeNull()
  expect(matchesUri('note:///a/**', `note:///a/${run(32)}`)).toBeNull()
})
