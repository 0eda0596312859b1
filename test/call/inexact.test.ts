// A number that a double does not hold passes where the schema says the same of both, and nowhere else.
import { expect, test } from 'vitest'
import { inexactNumber, misjudged } from '../../src/call/inexact.ts'

const [id, even] = ['9007199254740993', 9_007_199_254_740_992]
const n = (schema: unknown) => ({ type: 'object', properties: { n: schema, other: { enum: ['a', 1] } } })
const link = { $ref: '#/$defs/link' }

test.each<[string, unknown, string]>([
  ['an id is an integer either way', n({ type: 'integer', minimum: 1 }), `{"n":${id}}`],
  ['beside a list of words', n({ type: 'number' }), `{"n":${id},"other":"a"}`],
  ['among bounds that are elsewhere', n({ type: 'integer', maximum: 2 ** 63 }), `{"n":${id}}`],
  ['in a list', n({ items: { type: 'number', minimum: 0 } }), `{"n":[1,${id},2]}`],
  ['in one of alternatives', n({ anyOf: [{ type: 'integer' }, { type: 'null' }] }), `{"n":${id}}`],
  ['by a reference', { ...n({ $ref: '#/$defs/id' }), $defs: { id: { type: 'integer' } } }, `{"n":${id}}`],
  ['in a fraction of seventeen digits', n({ type: 'number', maximum: 1 }), '{"n":0.10000000000000001}'],
  ['where nothing is said', {}, `{"n":${id}}`],
  ['where everything is allowed', true, `{"n":${id}}`],
  [
    'in a chain',
    { properties: { n: link }, $defs: { link: { properties: { n: link } } } },
    `{"n":{"n":${id}}}`,
  ],
])('passes: %s', (_what, schema, args) => {
  expect(misjudged(args, schema)).toBeNull()
})

test.each<[string, unknown, string?]>([
  ['a bound that the double is', n({ maximum: even })],
  ['a bound that the double is not above', n({ exclusiveMinimum: even })],
  ['a bound that the double is not below', n({ exclusiveMaximum: even })],
  ['a lower bound', n({ minimum: even })],
  ['one of several', n({ allOf: [{ type: 'number' }, { maximum: even }] })],
  ['a bound in a condition', n({ if: { minimum: even }, else: false })],
  ['a constant', n({ const: even })],
  ['a list of numbers', n({ enum: ['a', even] })],
  ['a list of objects', { enum: [{ n: even }] }],
  ['a list without twins', n({ uniqueItems: true }), `[${even},${id}]`],
  ['a multiple', n({ multipleOf: 2 })],
  ['an integer that is none', n({ type: ['integer', 'null'] }), '9007199254740992.5'],
  ['no integer that is one', n({ not: { type: 'integer' } }), '9007199254740992.5'],
  ['one of alternatives', n({ oneOf: [{ type: 'string' }, { maximum: even }] })],
  ['a member by pattern', { patternProperties: { '^n': { const: even } } }],
  ['any other member', { additionalProperties: { const: even } }],
  ['what is left over', { unevaluatedProperties: { const: even } }],
  ['a schema that another member brings', { dependentSchemas: { n: n({ const: even }) } }],
  ['one of a list', n({ contains: { const: even } }), `[${id}]`],
  ['the first of a list', n({ prefixItems: [{ const: even }] }), `[${id}]`],
  ['all of a list', n({ items: { const: even } }), `[${id}]`],
  ['a reference', { ...n({ $ref: '#/$defs/a~1b' }), $defs: { 'a/b': { const: even } } }],
  [
    'a reference to itself',
    { ...n({ $ref: '#/properties/other' }), properties: { n: { $ref: '#' } }, const: even },
  ],
  ['a reference by name', n({ $ref: '#id' })],
  ['a reference by a dynamic name', n({ $dynamicRef: '#id' })],
  ['a schema of another address', n({ $id: 'https://example.com/', type: 'number' })],
  [
    'a reference in a schema of another address, to a place that is in this one too',
    {
      ...n({ $ref: '#/$defs/of/properties/n' }),
      $defs: {
        of: {
          $id: 'https://example.com/of',
          properties: { n: { $ref: '#/$defs/id' } },
          $defs: { id: { const: even } },
        },
        id: { type: 'integer' },
      },
    },
  ],
  [
    'a reference with a tab, which some readers leave out',
    { ...n({ $ref: '#/$defs/i\td' }), $defs: { 'i\td': { type: 'integer' }, id: { const: even } } },
  ],
  ['the schema of an old dialect', { dependencies: { n: n({ const: even }) } }],
])('is found: %s', (_what, schema, number = id) => {
  expect(misjudged(`{"n":${number}}`, schema)).not.toBeNull()
})

test('a schema that is too much to look at is taken at its worst, at once', () => {
  const words = Array.from({ length: 300_000 }, (_, at) => `w${at}`)
  const numbers = JSON.stringify({ n: Array.from({ length: 1000 }, () => 0) }).replaceAll('0', id)
  expect(misjudged(numbers, n({ items: { enum: words } }))).not.toBeNull()
  let deep: unknown = { type: 'number' }
  for (let at = 0; at < 50_000; at += 1) deep = { not: deep }
  expect(misjudged(`{"n":${id}}`, n(deep))).not.toBeNull()
  const laughs = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      at,
      { allOf: [{ $ref: `#/$defs/${at + 1}` }, { $ref: `#/$defs/${at + 1}` }] },
    ]),
  )
  expect(misjudged(`{"n":${id}}`, { ...n({ $ref: '#/$defs/0' }), $defs: { ...laughs, 40: {} } })).toBeNull()
})

test('a text of more such numbers than are looked at is taken at its worst, whatever the schema says', () => {
  const ids = (length: number): string =>
    JSON.stringify({ n: Array.from({ length }, () => 0) }).replaceAll('0', id)
  const schema = n({ items: { type: 'integer' } })
  expect(misjudged(ids(16_000), schema)).toBeNull()
  expect(misjudged(ids(16_001), schema)?.written).toBe(id)
})

// Each of these took minutes, in the one thread that all hosts wait for.
test.each<[string, (many: readonly unknown[]) => unknown]>([
  ['types', (many) => ({ type: many.map(() => 'string') })],
  ['schemas that say nothing', () => ({ allOf: Array.from({ length: 240_000 }, () => true) })],
  ['words', (many) => ({ enum: many })],
  [
    'patterns that say nothing',
    (many) => ({ patternProperties: Object.fromEntries(many.map((_, at) => [at, true])) }),
  ],
  [
    'members that the schema brings',
    (many) => ({ dependentSchemas: Object.fromEntries(many.map((_, at) => [at, true])) }),
  ],
  ['steps of a reference', (many) => ({ $ref: `#/$defs${many.map(() => '/not').join('')}` })],
])('a schema of many %s is looked at once, however many numbers there are', (_what, schema) => {
  const said = schema(Array.from({ length: 100_000 }, (_, at) => `w${at}`))
  const numbers = `[${Array.from({ length: 5000 }, () => id).join()}]`
  misjudged(numbers, { items: said, prefixItems: Array.from({ length: 100_000 }, () => true) })
  misjudged(`[${Array.from({ length: 5000 }, () => `{"a":${id}}`).join()}]`, { items: said })
})

test('a list that the schema has is looked up, not looked through', () => {
  const words = Array.from({ length: 100_000 }, (_, at) => `w${at}`)
  const numbers = `[${Array.from({ length: 5000 }, () => id).join()}]`
  expect(misjudged(numbers, { items: { enum: words } })).toBeNull()
  expect(misjudged(numbers, { items: { enum: [...words, even] } })).not.toBeNull()
})

test.each(['', '-', '[', '[12345,', '[-0.5, ', '{"a.1":', '["v1.2.3.4","2026",', '{"12345678901234":'])(
  'a number of sixteen digits is found wherever it stands: behind %j',
  (before) => {
    const after = { '': '', '[': ']', '{': '}' }[before.slice(0, 1)] ?? ''
    expect(inexactNumber(`${before}${id}${after}`)?.written).toBe(`${before === '-' ? '-' : ''}${id}`)
  },
)
