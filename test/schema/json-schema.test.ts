// What a schema forbids is refused, and what it allows passes: facts of the dialects, mostly those where validators differ.
import { expect, test } from 'vitest'
import { judgeBy } from '../../src/schema/dialect/compile.ts'

const own = (text: string): unknown => JSON.parse(text)
const draft = (name: string): string => `http://json-schema.org/draft-${name}/schema#`
const year = '2019-09'
const of2019 = { $schema: `https://json-schema.org/draft/${year}/schema` }
const tree = {
  $id: 'https://example.com/strict-tree',
  $dynamicAnchor: 'node',
  $ref: 'tree',
  unevaluatedProperties: false,
  $defs: {
    tree: {
      $id: 'tree',
      $dynamicAnchor: 'node',
      type: 'object',
      properties: { data: true, children: { type: 'array', items: { $dynamicRef: '#node' } } },
    },
  },
}

type Fact = readonly [what: string, schema: unknown, fits: readonly unknown[], not: readonly unknown[]]

test.each<Fact>([
  ['true', true, [1, null, {}], []],
  ['false', false, [], [1, null, {}]],
  [
    'items that `contains` matched are looked at',
    { prefixItems: [true], contains: { type: 'string' }, unevaluatedItems: false },
    [[1, 'a'], [1, 'a', 'b'], ['a']],
    [[1, 2], [1, 'a', 2], [1]],
  ],
  [
    'those of a branch that fits, and of no other',
    {
      anyOf: [{ contains: { const: 2 } }, { contains: { const: 3 }, minItems: 3 }],
      unevaluatedItems: { multipleOf: 5 },
    },
    [[2], [2, 5], [2, 3, 5]],
    [
      [2, 3],
      [3, 5],
      [1, 2],
    ],
  ],
  [
    '`contains` that needs none to match',
    { contains: { const: 1 }, minContains: 0, unevaluatedItems: false },
    [[], [1], [1, 1]],
    [[2], [1, 2]],
  ],
  [
    'so many of them',
    { contains: { const: 1 }, minContains: 2, maxContains: 3 },
    [
      [1, 1],
      [1, 2, 1, 1],
    ],
    [[1], [1, 1, 1, 1]],
  ],
  [
    'members that a condition looked at, without a branch',
    { if: { properties: { a: { const: 1 } }, required: ['a'] }, unevaluatedProperties: false },
    [{ a: 1 }, {}],
    [{ a: 2 }, { b: 1 }, { a: 1, b: 1 }],
  ],
  [
    'members that a neighbour looked at, and not its neighbours',
    { allOf: [{ properties: { a: true } }, { unevaluatedProperties: false }] },
    [{}],
    [{ a: 1 }],
  ],
  [
    'members of what is within are others',
    { properties: { a: { properties: { b: true } } }, unevaluatedProperties: false },
    [{ a: { b: 1, c: 1 } }],
    [{ b: 1 }],
  ],
  [
    'members by their own names, whatever those are',
    own(
      '{"properties":{"__proto__":{"type":"number"},"constructor":{"type":"number"}},"required":["__proto__"]}',
    ),
    [own('{"__proto__":1}'), own('{"__proto__":1,"constructor":2}')],
    [own('{"__proto__":"1"}'), {}, own('{"__proto__":1,"constructor":"2"}')],
  ],
  [
    'a name that every object has is no further one, where it is listed',
    own('{"properties":{"__proto__":true},"additionalProperties":false}'),
    [own('{"__proto__":1}'), {}],
    [own('{"toString":1}')],
  ],
  [
    'the same value, whatever its members are called and however they stand',
    own('{"not":{"const":{"constructor":{"a":[1]},"valueOf":1}}}'),
    [own('{"valueOf":2,"constructor":{"a":[1]}}'), {}],
    [own('{"valueOf":1,"constructor":{"a":[1.0]}}')],
  ],
  [
    'items twice',
    { uniqueItems: true },
    [
      [1, true],
      [{ a: 1 }, { a: 2 }],
      [[1], 1],
    ],
    [
      [1, 1.0],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
  ],
  ['null, which no number is, however large', { enum: [null] }, [null], [own('1e400')]],
  ['null beside a number that is too large for a double', { uniqueItems: true }, [[null, own('1e400')]], []],
  ['letters, not halves of them', { maxLength: 1, pattern: '^.$' }, ['é', '😀'], ['ab']],
  [
    'a dynamic reference: the outermost of that name',
    tree,
    [{ children: [{ data: 1 }] }],
    [{ children: [{ daat: 1 }] }],
  ],
  [
    'a dynamic reference below $defs to a name of its own',
    {
      $ref: '#/$defs/list',
      $defs: { list: { items: { $dynamicRef: '#item' } }, item: { $dynamicAnchor: 'item', type: 'string' } },
    },
    [['a'], []],
    [[1]],
  ],
  [
    'a dynamic reference to a name that no way here came by is a reference',
    {
      $id: 'https://example.com/here',
      properties: { a: { $dynamicRef: 'there#text' } },
      $defs: { t: { $id: 'there', $defs: { text: { $dynamicAnchor: 'text', type: 'string' } } } },
    },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  [
    'a dynamic reference to a plain name is a reference',
    { properties: { a: { $dynamicRef: '#text' } }, $defs: { text: { $anchor: 'text', type: 'string' } } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
  [
    'a reference by an address within, and what stands beside it',
    {
      $id: 'https://example.com/root',
      properties: { a: { $ref: 'part', maxLength: 2 } },
      $defs: { p: { $id: 'part', $ref: '#/$defs/q', $defs: { q: { type: 'string' } } } },
    },
    [{ a: 'x' }],
    [{ a: 1 }, { a: 'xxx' }],
  ],
  [
    'a name in what is no schema names nothing',
    { const: { $id: 'https://example.com/x', $anchor: 'a' }, $defs: { one: { $anchor: 'a' } } },
    [{ $id: 'https://example.com/x', $anchor: 'a' }],
    [1],
  ],
  ['nullable, which is a word of another language', { type: 'string', nullable: true }, ['x'], [null]],
  [
    'what no dialect has',
    { type: 'string', format: 'email', $async: true, discriminator: {} },
    ['no address'],
    [1],
  ],
  [
    'a list in the place of `items`, before 2020-12',
    { $schema: draft('07'), items: [{ const: 1 }], additionalItems: { const: 2 } },
    [[1], [1, 2], []],
    [[2], [1, 3]],
  ],
  [
    '`$ref` hides its neighbours up to draft-07',
    {
      $schema: draft('07'),
      properties: { a: { $ref: '#/definitions/s', maxLength: 1 } },
      definitions: { s: { type: 'string' } },
    },
    [{ a: 'xx' }],
    [{ a: 1 }],
  ],
  [
    'an id that is a fragment, up to draft-07',
    { $schema: draft('07'), $ref: '#s', definitions: { s: { $id: '#s', type: 'string' } } },
    ['x'],
    [1],
  ],
  [
    'a limit that is a word, in draft-04',
    { $schema: draft('04'), minimum: 1, exclusiveMinimum: true },
    [2],
    [1],
  ],
  [
    'what a member needs',
    { dependencies: { a: ['b'], c: { required: ['d'] } } },
    [
      { a: 1, b: 1 },
      { c: 1, d: 1 },
    ],
    [{ a: 1 }, { c: 1 }],
  ],
  [
    'items that `contains` matched are not looked at in 2019-09',
    { ...of2019, contains: { const: 1 }, unevaluatedItems: false },
    [],
    [[1]],
  ],
  [
    'a recursive reference, in 2019-09',
    {
      ...of2019,
      $id: 'https://example.com/strict',
      $recursiveAnchor: true,
      $ref: 'loose',
      unevaluatedProperties: false,
      $defs: { loose: { $id: 'loose', $recursiveAnchor: true, properties: { a: { $recursiveRef: '#' } } } },
    },
    [{ a: { a: {} } }],
    [{ a: { b: 1 } }],
  ],
])('%s', (_what, schema, fits, not) => {
  const judge = judgeBy(schema)
  for (const value of fits) expect(judge(value), JSON.stringify(value)).toBeNull()
  for (const value of not) expect(judge(value), JSON.stringify(value)).toMatch(/^arguments/)
})
