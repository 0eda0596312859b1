// Two texts of one value have one canonical form, and what has none is refused by name.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalize, depthLimit, NotCanonical } from '../../src/call/canonical.ts'
import { inexactNumber } from '../../src/call/inexact.ts'

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

  test('writes every character as JSON.stringify does, whatever stands around it', () => {
    for (let code = 0; code < 0x180; code++) {
      const text = `a${String.fromCharCode(code)}z`
      expect(canonicalize(text)).toBe(JSON.stringify(text))
      expect(canonicalize({ [text]: text.repeat(40) })).toBe(JSON.stringify({ [text]: text.repeat(40) }))
    }
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

describe('a number that readers take for different ones', () => {
  test.each([
    '9007199254740993',
    '-12345678901234567890',
    '0.1000000000000000055511151231257827',
    '9007199254740992.0000001',
    '1e-400',
    '1e400',
    '1234567890123456789e-3',
  ])('%s is found, however deep, and not in strings', (number) => {
    expect(inexactNumber(`{"a":[1,{"b":${number}}]}`)?.written).toBe(number)
    expect(inexactNumber(`{"a":"${number}","${number}":1}`)).toBeNull()
  })

  test.each([
    '9007199254740992',
    '12345678901234567000',
    '1.0',
    '100000000000000000000',
    '1E+2',
    '0.00e5',
    '-0.0000000000000000000',
    '5e-324',
    '1.7976931348623157e308',
    '0.1',
    '100e-2',
  ])('%s is not one', (number) => {
    expect(inexactNumber(`[${number}]`)).toBeNull()
  })

  test('is none that JavaScript wrote', () => {
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (n) => inexactNumber(JSON.stringify([n])) === null,
      ),
    )
  })

  test('costs no more the longer it is', () => {
    expect(inexactNumber(`[1${'0'.repeat(2_000_000)}1]`)).not.toBeNull()
  })
})
