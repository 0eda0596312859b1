// Two texts of one value have one canonical form, and what has none is refused by name.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalize, depthLimit, NotCanonical } from '../../src/call/canonical.ts'

describe('the canonical form', () => {
  test('is that of the example in RFC 8785 section 3.2', () => {
    const value = JSON.parse(
      String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
    ) as unknown
    expect(canonicalize(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  test('sorts members by UTF-16 code units, as section 3.2.3 says', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 }
    expect(Object.values(JSON.parse(canonicalize(value)) as object)).toHaveLength(7)
    expect(
      canonicalize(value)
        .match(/\d(?=[,}])/g)
        ?.join(''),
    ).toBe('2467153')
  })

  test('does not depend on the order in which members were written', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).toReversed())
        expect(canonicalize(reversed)).toBe(canonicalize(value))
        expect(canonicalize(JSON.parse(canonicalize(value)))).toBe(canonicalize(value))
      }),
    )
  })

  test.each([
    ['half a surrogate pair', { a: ['\ud800'] }, '/a/0'],
    ['a key of half a pair', { '\udc00': 1 }, '/\udc00'],
    ['an infinite number', { n: JSON.parse('1e999') as number }, '/n'],
  ])('does not exist for %s', (_title, value, pointer) => {
    expect(() => canonicalize(value)).toThrow(NotCanonical)
    try {
      canonicalize(value)
    } catch (error) {
      expect((error as NotCanonical).pointer).toBe(pointer)
    }
  })

  test('does not exist for nesting that would exhaust the stack', () => {
    let deep: unknown = 1
    for (let n = 0; n < depthLimit + 2; n += 1) deep = [deep]
    expect(() => canonicalize(deep)).toThrow(/deeper/)
  })
})
