// A schema says where and why a value does not fit; one that nobody can judge by says why, before any value comes.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plainCheck } from '../../src/call/plain-schema.ts'
import { judgeBy } from '../../src/schema/dialect/compile.ts'

const draft07 = 'http://json-schema.org/draft-07/schema#'

test('where and why is said', () => {
  const judge = judgeBy({
    properties: { 'a/b': { items: { type: ['string', 'null'], maxLength: 2 } } },
    additionalProperties: false,
  })
  expect(judge({ 'a/b': ['x', 1] })).toBe('arguments/a~1b/1: got number, expected string or null')
  expect(judge({ 'a/b': ['xxx'] })).toBe('arguments/a~1b/0: got 3 characters, expected at most 2')
  expect(judge({ c: 1 })).toBe('arguments/c: the tool takes no such argument')
})

test.each(['', 'a'])('no character is cut in half, whatever is short: %j and so on', (first) => {
  const long = `${first}${'😀'.repeat(300)}`
  const unusable = (schema: unknown): string => {
    try {
      return String(judgeBy(schema)({}))
    } catch (error) {
      return (error as Error).message
    }
  }
  const said = [
    unusable({ type: long }),
    unusable({ properties: { [long]: 1 } }),
    unusable({ required: [long] }),
    plainCheck({ enum: [long] })?.(1, 'arguments') ?? '',
  ]
  for (const text of said) {
    expect(text).toContain('😀…')
    expect(text.length).toBeLessThan(400)
    expect(text.isWellFormed()).toBe(true)
  }
})

describe('no schema to judge by:', () => {
  test.each<[string, unknown, string]>([
    ['a type that is none', { type: 'text' }, '#/type: got "text", expected'],
    [
      'a bound that is no number',
      { properties: { n: { minimum: '1' } } },
      '#/properties/n/minimum: got "1", expected a number',
    ],
    ['a length that is none', { maxLength: -1 }, '#/maxLength: got -1, expected a whole number'],
    ['a schema that is none', { properties: { n: 1 } }, '#/properties/n: got 1, expected a schema'],
    [
      'a branch that is none, though no value comes to it',
      { anyOf: [true, { items: [] }] },
      '#/anyOf/1/items: got [], expected a schema',
    ],
    ['a reference that leads nowhere', { $ref: '#/$defs/gone' }, '#/$ref: got'],
    ['a reference to a name that nobody has', { $dynamicRef: '#gone' }, 'nothing is fetched'],
    ['a reference that leads out', { $ref: 'https://example.com/x' }, 'nothing is fetched'],
    [
      'a reference with a tab, which some readers leave out',
      { $ref: '#/$defs/i\td', $defs: { id: true, 'i\td': false } },
      'expected a reference',
    ],
    [
      'a reference that ends in a space, which some readers cut off',
      { $ref: '#/$defs/id ', $defs: { id: true, 'id ': false } },
      'expected a reference',
    ],
    [
      'a reference with half a letter, which some readers replace',
      { $ref: '#/$defs/\ud800', $defs: { '\ufffd': true, '\ud800': false } },
      'expected a reference',
    ],
    [
      'a name where some readers look for none',
      { $ref: '#/x/a', x: { a: { $id: 'a', $ref: '#/$defs/b', $defs: { b: false } } }, $defs: { b: true } },
      '#/x/a/$id: got "a", expected no name where no schema is expected',
    ],
    ['a reference that is none', { $ref: 'http://[' }, 'expected a reference'],
    ['a name that stands twice', { $defs: { a: { $anchor: 'x' }, b: { $anchor: 'x' } } }, 'stands twice'],
    ['an address that stands twice', { $defs: { a: { $id: 'x' }, b: { $id: 'x' } } }, 'stands twice'],
    [
      'an address that is that of the whole',
      { $ref: '#/$defs/s', $defs: { s: { type: 'string' }, z: { $id: '', $defs: { s: true } } } },
      'stands twice',
    ],
    [
      'a dialect that nobody knows',
      { $schema: 'https://example.com/mine' },
      '#/$schema: got "https://example.com/mine", expected one of 2020-12',
    ],
    [
      'a dialect within another',
      { $defs: { a: { $id: 'a', $schema: draft07 } } },
      'expected 2020-12, as the schema around it',
    ],
    [
      'a pattern that is none',
      { properties: { a: { pattern: '(' } } },
      '#/properties/a/pattern: got "(", expected a regular expression (Unterminated group)',
    ],
    [
      'a name by a pattern that is none',
      { patternProperties: { '[': true } },
      '#/patternProperties: got "[", expected a regular expression (Unterminated character class)',
    ],
  ])('%s', (_what, schema, said) => {
    expect(() => judgeBy(schema)).toThrow(said)
  })
})

test('a type that is named over and over is said once', () => {
  expect(judgeBy({ type: ['string', 'string', 'null'] })(1)).toBe(
    'arguments: got number, expected string or null',
  )
})

test('a schema that leads to itself without end is an error, and no hang', () => {
  expect(() => judgeBy({ $ref: '#' })(1)).toThrow(RangeError)
})

test('any schema is a judge or a reason why it is none, and any value a verdict', () => {
  const words = [
    'type',
    'not',
    'items',
    'contains',
    '$ref',
    'unevaluatedItems',
    'properties',
    'allOf',
    'minimum',
    '$id',
    '$defs',
  ]
  const { schema } = fc.letrec((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 3 }),
    ),
    value: fc.oneof(
      { maxDepth: 4 },
      tie('schema'),
      fc.array(tie('schema'), { maxLength: 2 }),
      fc.constantFrom('#', '#/not', 'string', 'x'),
    ),
  }))
  fc.assert(
    fc.property(schema, fc.jsonValue(), (one, value) => {
      let judge: ReturnType<typeof judgeBy>
      try {
        judge = judgeBy(one)
      } catch (error) {
        expect((error as Error).message).not.toBe('')
        return
      }
      try {
        expect(judge(value) ?? 'arguments').toMatch(/^arguments/)
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError) // it leads to itself
      }
    }),
    { numRuns: 2000 },
  )
})
