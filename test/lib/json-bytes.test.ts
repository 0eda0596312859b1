// Whatever a value is, its end over the bytes is its end in the text, and what is refused there is refused here.
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { endOfValueIn, Piece, viewOf } from '../../src/lib/json-bytes.ts'
import { bound, endOfValue, JsonScanError } from '../../src/lib/json-scan.ts'

type End = (text: string, at: number, isUnique: boolean) => number

const ofText: End = (text, at, isUnique) => endOfValue(text, at, isUnique, 2)
const ofBytes: End = (text, at, isUnique) => endOfValueIn(Buffer.from(text, 'latin1'), text, at, isUnique, 2)

function told(end: End, text: string, isUnique: boolean): unknown {
  bound(false) // as each message that is read value by value begins
  try {
    return end(`,${text}`, 1, isUnique)
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error
    return [error.kind, error.at, error.message]
  }
}

const latin1 = (text: string): string => Buffer.from(text).toString('latin1')
const spaced = (json: string): string => json.replaceAll(/([,:{}[\]])/g, ' $1 ')
const many = Array.from({ length: 14 }, (_, n) => `"k${n}":${n + 1}`).join(',')

describe.each([true, false])('with keys that must be unique: %s', (isUnique) => {
  const isAlike = (text: string): void =>
    expect(told(ofBytes, text, isUnique)).toEqual(told(ofText, text, isUnique))

  test('any value ends where it does in the text, with whatever one character is put, changed or taken away', () => {
    const json = fc.oneof(fc.json(), fc.json().map(spaced)).map(latin1)
    const char = fc.constantFrom(...'"{}[],:\\ \t\r\n0-e.é\u0000'.split(''), ',"a":1', '"":0,')
    fc.assert(
      fc.property(json, fc.nat(), char, (text, place, put) => {
        const at = place % (text.length + 1)
        isAlike(text)
        isAlike(`${text},`)
        isAlike(`${text.slice(0, at)}${put}${text.slice(at)}`)
        isAlike(`${text.slice(0, at)}${put}${text.slice(at + 1)}`)
        isAlike(text.slice(0, at))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    '{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}',
    '{"a":{"b":1},"a":2}',
    '{"a":[{"b":1,"b":2}]}',
    '{"a":1,"\\u0061":2}',
    `{${many}}`,
    `{${many},"k3":0}`,
    `[{${many}},{${many}}]`,
    `{"a":${'{"a":'.repeat(20)}1${'}'.repeat(20)}}`,
    `${'['.repeat(990)}${']'.repeat(990)}`,
    `${'['.repeat(1001)}${']'.repeat(1001)}`,
    `"${'x'.repeat(300)}"`,
    `["${'x'.repeat(300)}\\n",-1.5e3,0,01,1.,tru,null]`,
    '["a\\qb"]',
    '[1,]',
    '{"a" 1}',
    '',
  ])('so does this one: %s', isAlike)
})

test('a piece stands where all of its bytes do, and nowhere beyond the end', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\u00ff'), maxLength: 40 })
  fc.assert(
    fc.property(text, text, fc.integer({ min: -3, max: 45 }), (all, sought, at) => {
      const bytes = Buffer.from(`${all}${sought}${all}`, 'latin1')
      const [piece, view] = [new Piece(Buffer.from(sought, 'latin1')), viewOf(bytes)]
      const isThere = (from: number): boolean =>
        from >= 0 &&
        from <= bytes.length &&
        bytes.subarray(from, from + piece.length).toString('latin1') === sought
      expect([at, all.length].map((from) => piece.isAt(view, from, view.byteLength))).toEqual([
        isThere(at),
        true,
      ])
    }),
    { numRuns: 1000 },
  )
})
