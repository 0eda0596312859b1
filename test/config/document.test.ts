// Parsed text keeps the place of every key and value; what is clever is refused, and nothing makes the parser fall over.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDocument, parseDocument } from '../../src/config/document.ts'
import { SallyportError } from '../../src/errors.ts'

const text = `version: 1
servers:
  files: # the first
    command: node
    args: [a, b]
  "quoted": { command: x }
alias: &one { key: value }
again: *one
`
const document = parseDocument('f.yaml', text)

describe('places', () => {
  test.each([
    [['version'], 'key', '1:1'],
    [['version'], 'value', '1:10'],
    [['servers', 'files', 'command'], 'value', '4:14'],
    [['servers', 'files', 'args', 1], 'value', '5:15'],
    [['servers', 'quoted'], 'key', '6:3'],
    [['servers', 'files', 'absent'], 'value', '4:5'],
    [['again', 'key'], 'value', '7:20'],
    [[], 'value', '1:1'],
  ] as const)('of %j, %s: %s', (at, part, place) => {
    const found = document.locate(at, part)
    expect(`${found?.line}:${found?.column}`).toBe(place)
  })
})

test('JSON is read as it is, with tabs and escapes', () => {
  expect(parseDocument('f.json', '{\n\t"a": "\\u00e9\\/",\n\t"b": [1, true, null]\n}').value).toEqual({
    a: 'é/',
    b: [1, true, null],
  })
})

test('a key called __proto__ is a key', () => {
  const { value } = parseDocument('f.yaml', '__proto__: { polluted: 1 }')
  expect(Object.keys(value as object)).toEqual(['__proto__'])
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

test.each([
  ['deep lists', '['.repeat(100_000)],
  ['deep mappings', '{a: '.repeat(50_000)],
  ['deep blocks', Array.from({ length: 3_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')],
  [
    'a billion laughs',
    `a: &a [x,x]\n${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*${i === 0 ? 'a' : `b${i - 1}`}, *${i === 0 ? 'a' : `b${i - 1}`}]`).join('\n')}`,
  ],
])('%s are refused, or read, but bring nothing down', (_, hostile) => {
  try {
    parseDocument('f.yaml', hostile)
  } catch (error) {
    expect(error).toBeInstanceOf(SallyportError)
    expect((error as SallyportError).message).not.toMatch(/\n/)
  }
})

test('what is nested too deeply is told so', () => {
  for (const deep of ['[', '{a: '])
    expect(() => parseDocument('f.yaml', deep.repeat(20_000))).toThrow(
      /: the file is nested too deeply to be read$/,
    )
})

test.each(['a: 1 # why\rb: 2\n', '{"a":{\r}}', 'a: "x\ry"', '\r'])(
  'what two readers end lines in differently has no reading: %j',
  (ambiguous) => {
    expect(() => parseDocument('f.yaml', ambiguous)).toThrow(
      /^f\.yaml:\d+:\d+: got a carriage return by itself/,
    )
    expect(() => parseDocument('f.yaml', ambiguous.replaceAll('\r', '\r\n'))).not.toThrow(/carriage/)
  },
)

const letters = 'ab:-[]{}&*!|>\'"#%@`,? \n\t<~0'.split('')

test('any text is a value or a refusal in one line', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...letters), maxLength: 40 }), (random) => {
      try {
        parseDocument('f.yaml', random)
      } catch (error) {
        expect(error).toBeInstanceOf(SallyportError)
        expect((error as SallyportError).message).toMatch(/^f\.yaml:\d+:\d+: [^\n]+$/)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('what is written out can be read back', () => {
  const value = { a: [], b: { c: 'x: y', d: ['1', 2] }, e: '' }
  const written = formatDocument(value, (at) => (at.length > 0 ? 'note' : null))
  expect(parseDocument('f.yaml', written).value).toEqual(value)
})
