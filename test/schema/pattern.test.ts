// A pattern that is none to a reader of Unicode is to ours what it is to every other, letter by letter.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { patternOf } from '../../src/schema/pattern.ts'

const parts = [
  'a',
  '.',
  '[a-c]',
  String.raw`\@`,
  String.raw`\-`,
  '{',
  '}',
  ']',
  'b{2}',
  '{1',
  '^',
  '$',
  '|',
  '+',
]
const inClass = [
  'a',
  '-',
  String.raw`\w`,
  String.raw`\d`,
  '.',
  '{',
  '}',
  '[',
  String.raw`\-`,
  String.raw`\]`,
  '^',
]
const pattern = fc.array(
  fc.oneof(
    fc.constantFrom(...parts),
    fc.array(fc.constantFrom(...inClass), { minLength: 1, maxLength: 4 }).map((of) => `[${of.join('')}]`),
  ),
  { maxLength: 5 },
)
const text = fc.string({ unit: fc.constantFrom(...Array.from('ab-.@{}]12[^|')), maxLength: 6 })

const readsAsUnicode = (written: string): boolean => {
  try {
    return new RegExp(written, 'u').unicode
  } catch {
    return false
  }
}

test('it is refused, or matches what it matches elsewhere', () => {
  let compared = 0
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 5 }), (of, texts) => {
      const written = of.join('')
      if (readsAsUnicode(written)) return
      let ours: RegExp
      try {
        ours = patternOf(written)
      } catch (error) {
        expect(error).toBeInstanceOf(SyntaxError)
        return
      }
      compared += 1
      expect(ours.unicode).toBe(true)
      const elsewhere = new RegExp(written)
      for (const one of texts) expect(ours.test(one), `${written} ${one}`).toBe(elsewhere.test(one))
    }),
    { numRuns: 5000 },
  )
  expect(compared).toBeGreaterThan(500)
})

// All letters of ASCII, so that one that is let in or out is seen.
const letters = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
test.each([
  String.raw`[\d--a]`,
  String.raw`[\d-a-z]`,
  String.raw`[a-\d-z]`,
  String.raw`[^\s-+-9]`,
  String.raw`[\w-\.-\/]`,
  String.raw`[{1,2}\@-Z]`,
  String.raw`[\x41-\u0043\@]`,
  String.raw`[\@-]`,
])('a class of hyphens holds the letters that it holds elsewhere, and no range more: %s', (written) => {
  expect(readsAsUnicode(written)).toBe(false)
  const [ours, elsewhere] = [patternOf(`^${written}$`), new RegExp(`^${written}$`)]
  expect(letters.filter((one) => ours.test(one))).toEqual(letters.filter((one) => elsewhere.test(one)))
})
