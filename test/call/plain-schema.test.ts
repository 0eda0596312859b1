// What is judged here and now takes no time, whatever schema stands beside whatever arguments; what would is for the thread.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { judgePlainly, plainCheck, TooLong } from '../../src/call/plain-schema.ts'
import { ArgumentSchemas } from '../../src/daemon/governance/argument-schemas.ts'
import { judgeBy } from '../../src/schema/dialect/compile.ts'

const judged = (schema: unknown, value: unknown): string | null => {
  const check = plainCheck(schema)
  if (check === null) throw new Error('the schema is not plain')
  return judgePlainly(check, value, 'arguments')
}
const list = <T>(length: number, of: (n: number) => T): T[] => Array.from({ length }, (_, n) => of(n))
const within = (depth: number, schema: object): object =>
  depth === 0 ? schema : { anyOf: list(16, () => within(depth - 1, schema)) }

const long: readonly [string, object, unknown][] = [
  [
    'many members beside many objects',
    {
      type: 'array',
      items: { properties: Object.fromEntries(list(15_000, (n) => [`p${n}`, {}])) },
    },
    list(10_000, () => ({})),
  ],
  ['many ways to measure a long text', within(2, { maxLength: 1 }), 'x'.repeat(1_000_000)],
  [
    'many alternatives of many elements',
    { items: { anyOf: [within(2, { type: 'null' }), { type: 'number' }] } },
    list(100_000, () => 1),
  ],
  [
    'many alternatives for many members',
    within(2, { additionalProperties: { type: 'null' }, type: 'object' }),
    Object.fromEntries(list(50_000, (n) => [`k${n}`, null]).concat([['last', 1 as never]])),
  ],
]

describe('a schema and a value that are long beside each other', () => {
  test.each(long)('are not judged here: %s', (_what, schema, value) => {
    expect(() => judged(schema, value)).toThrow(TooLong)
  })

  test('are judged by the thread, within its time', async () => {
    await using schemas = new ArgumentSchemas()
    const [, parameters, value] = long[0] ?? ['', {}, null]
    const tool = { declaration: { parameters }, surfaceDigest: 'd' } as never
    const owner = { server: 's', acceptance: 1, principal: '0' }
    expect(await schemas.judge(owner, tool, value, JSON.stringify(value))).toBeNull()
    expect(await schemas.judge(owner, tool, 1, '1')).toMatch(/array/)
  })
})

test('a long list of values is looked up, not looked through, however many are held against it', () => {
  const values = list(40_000, (n) => n)
  expect(
    judged(
      { type: 'array', items: { enum: values } },
      list(100_000, () => 39_999),
    ),
  ).toBeNull()
})

// A listing of 124 000 members takes 120 ms, and each alternative asked for one.
test('the members of an object are listed once a judgement, however many alternatives look at them', () => {
  let listings = 0
  const members = Object.fromEntries(list(1000, (n) => [`k${n}`, n]))
  const value = new Proxy(members, {
    ownKeys: (target) => {
      listings += 1
      return Reflect.ownKeys(target)
    },
  })
  const schema = within(1, { additionalProperties: { maximum: 998 } })
  for (let judgement = 1; judgement <= 2; judgement += 1) {
    expect(judged(schema, [value])).toBeNull()
    expect(judged(schema, value)).toMatch(/none of 16/)
    expect(listings).toBe(judgement)
  }
})

test('a judgement that was too long leaves nothing of its arguments for the next', () => {
  const members: Record<string, unknown> = Object.fromEntries(list(50_000, (n) => [`k${n}`, null]))
  const schema = within(2, { additionalProperties: { type: 'null' }, maximum: 0, type: 'object' })
  members['last'] = 1
  expect(() => judged(schema, members)).toThrow(TooLong)
  members['last'] = null
  expect(judged(schema, members)).toBeNull()
})

test('each judgement has all the time there is', () => {
  for (let n = 0; n < 5; n += 1)
    expect(
      judged(
        { items: { type: 'number' } },
        list(100_000, () => 1),
      ),
    ).toBeNull()
})

// Looked at each time for each item, it took minutes.
test('a type that is named over and over is one', () => {
  const type = [...list(24_000, () => 'string'), 'null']
  expect(
    judged(
      { type: 'array', items: { type } },
      list(300_000, () => null),
    ),
  ).toBeNull()
})

test('a word that draft-04 does not have is a note there, and the thread reads it so', () => {
  const parameters = { $schema: 'http://json-schema.org/draft-04/schema#', properties: { a: { const: 1 } } }
  expect(plainCheck(parameters)).toBeNull()
  expect(judgeBy(parameters)({ a: 2 })).toBeNull()
  expect(judged({ ...parameters, $schema: 'http://json-schema.org/draft-06/schema#' }, { a: 2 })).toMatch(
    /a:/,
  )
})

const names = fc.constantFrom('a', 'b', 'constructor', '__proto__')
const scalar = fc.constantFrom(null, true, 0, 1, 1.5, -1, '', 'x', '😀')
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}))
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']
const bound = fc.integer({ min: 0, max: 2 })
const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    fc.constant({ type: 'string' }),
    fc.record(
      {
        $schema: fc.constantFrom(
          'http://json-schema.org/draft-04/schema#',
          'http://json-schema.org/draft-07/schema#',
          'https://json-schema.org/draft/2020-12/schema',
          'mine',
        ),
        type: fc.oneof(
          fc.constantFrom(...types),
          fc.uniqueArray(fc.constantFrom(...types), { minLength: 1 }),
        ),
        enum: fc.array(scalar, { minLength: 1, maxLength: 3 }),
        const: scalar,
        required: fc.uniqueArray(names, { maxLength: 2 }),
        properties: fc.dictionary(names, tie('schema'), { maxKeys: 2, noNullPrototype: true }),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
        items: tie('schema'),
        anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        minimum: bound,
        exclusiveMaximum: bound,
        maxLength: bound,
        minItems: bound,
        format: fc.constant('email'),
      },
      { requiredKeys: [] },
    ),
  ),
}))

test('what is judged here is judged as by the thread', () => {
  let judgedHere = 0
  fc.assert(
    fc.property(schema, value, (said, one) => {
      const check = plainCheck(said)
      if (check === null) return
      judgedHere += 1
      expect(judgePlainly(check, one, 'arguments') === null).toBe(judgeBy(said)(one) === null)
    }),
    { numRuns: 1000 },
  )
  expect(judgedHere).toBeGreaterThan(100)
})
