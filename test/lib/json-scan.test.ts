import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeString,
  elements,
  JsonScanError,
  type Member,
  members,
  mostKey,
  mostListed,
  mostParts,
  skipSpace,
} from '../../src/lib/json-scan.ts'

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const keysOf = (text: string, unique = false): string[] =>
  members(latin1(text), 0, latin1(text).length, { unique }).map(({ key }) => key)

test('every object that JSON.stringify writes is read, and every value stands where it is said to', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), fc.nat(3), (value, space) => {
      const text = latin1(JSON.stringify(value, null, ' '.repeat(space)).replaceAll('\n', ' '))
      const found = members(text, 0, text.length, { unique: true })
      const read = Object.fromEntries(
        found.map(({ key, start, end }) => [
          key,
          JSON.parse(Buffer.from(text.slice(start, end), 'latin1').toString()),
        ]),
      ) as unknown
      expect(read).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('what JSON.parse refuses is refused, and nothing else', () => {
  const piece = fc.constantFrom(
    ...'{}[],:"\\u0041 1-.e+tfn'.split(''),
    'true',
    'null',
    '"a"',
    '\\"',
    '\t',
    '0',
    '12',
    '""',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = `{"k":${pieces.join('')}}`
      let valid = true
      try {
        JSON.parse(text)
      } catch {
        valid = false
      }
      const scan = (): unknown => members(text, 0, text.length)
      if (valid) expect(scan).not.toThrow()
      else expect(scan).toThrow(JsonScanError)
    }),
    { numRuns: 5000 },
  )
})

test('a message that lacks its end is not completed by the next line', () => {
  const text = '{"a":\n1}'
  expect(() => members(text, 0, 5)).toThrow(JsonScanError)
  expect(() => members(text, 0, text.length)).toThrow(JsonScanError)
})

test('a carriage return ends a line for some readers, and so it stands nowhere but at its end', () => {
  for (const text of ['{"a":1}\r', '{"a":1} \r\n', '\r\n']) {
    const end = text.replace('\n', '').length
    if (text !== '\r\n') expect(members(text, 0, end).map(({ key }) => key)).toEqual(['a'])
    else expect(skipSpace(text, 0)).toBe(end)
  }
  for (const text of ['\r{"a":1}', '{\r"a":1}', '{"a"\r:1}', '{"a":\r1}', '{"a":1\r}', '{"a":1}\r\r\n'])
    expect(() => members(text, 0, text.length), JSON.stringify(text)).toThrow(JsonScanError)
  for (const text of ['[\r1]', '[1\r,2]', '[1,\r2]'])
    expect(() => elements(text, 0, text.length), JSON.stringify(text)).toThrow(JsonScanError)
})

test.each([
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
  '{"é":1,"\\u00e9":2}',
  '{"x":[{"b":{"c":1,"c":1}}]}',
  '{"":1,"":2}',
])('a key that stands twice in one object is found: %s', (text) => {
  expect(() => keysOf(text, true)).toThrow(/stands twice/)
})

test.each(Array.from({ length: 20 }, (_, before) => before + 1))('it is found behind %i keys', (before) => {
  const keys = Array.from({ length: before }, (_, i) => `k${i}`)
  for (const again of [0, before >> 1, before - 1]) {
    const text = `{${[...keys, `k${again}`].map((key) => `"${key}":1`).join(',')}}`
    expect(() => keysOf(text, true)).toThrow(`"k${again}" stands twice`)
    expect(() => keysOf(`{"a":[${text}]}`, true)).toThrow(`"k${again}" stands twice`)
    expect(keysOf(text)).toEqual([...keys, `k${again}`])
  }
  expect(keysOf(`{${keys.map((key) => `"${key}":1`).join(',')}}`, true)).toEqual(keys)
})

test('the same key in different objects is no matter, however many keys there are', () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, { a: { a: 1 } }]))
  expect(keysOf(JSON.stringify(many), true)).toHaveLength(100)
  expect(() => keysOf(`${JSON.stringify(many).slice(0, -1)},"k50":1}`, true)).toThrow(/"k50"/)
})

test('members of named values are listed in the same pass', () => {
  const text = '{"params":{"name":"x","arguments":{"a":1}},"other":{"b":1}}'
  const [params, other] = members(text, 0, text.length, { inside: new Set(['params']) })
  expect(params?.inner.map(({ key }) => key)).toEqual(['name', 'arguments'])
  expect(other?.inner).toEqual([])
})

test('nesting without end is refused, not followed', () => {
  const text = `{"a":${'['.repeat(1_000_000)}`
  expect(() => members(text, 0, text.length)).toThrow(/nested deeper/)
})

test('a string literal is decoded as JSON does it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      const literal = latin1(JSON.stringify(value))
      expect(decodeString(literal)).toBe(value)
    }),
  )
})

test('elements are found with their bounds', () => {
  const text = ' [ 1 , {"a":[2]},"x" ] '
  expect(elements(text, 0, text.length).map(({ start, end }) => text.slice(start, end))).toEqual([
    '1',
    '{"a":[2]}',
    '"x"',
  ])
})

test('a long string is read as JSON.parse reads it, whatever stands where in it', () => {
  const some = fc.constantFrom('x'.repeat(150), 'é'.repeat(90), 'word, ', '\\n', '\\u00e9', '\\x')
  const odd = fc.constantFrom('\0', '\t', '\x0f', '\x10', '\x1f', '\x7f', '"', '\\', '')
  fc.assert(
    fc.property(
      fc.array(some, { maxLength: 6 }),
      odd,
      fc.array(some, { maxLength: 6 }),
      (before, it, after) => {
        const text = latin1(`{"k":"${before.join('')}${it}${after.join('')}","end":1}`)
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        const scan = (): Member[] => members(text, 0, text.length)
        if (valid) expect(scan().map(({ key }) => key)).toEqual(['k', 'end'])
        else expect(scan).toThrow(JsonScanError)
      },
    ),
    { numRuns: 2000 },
  )
})

test('a long string without an end is not ended by the next line, and the place of the fault is told', () => {
  const long = 'y'.repeat(300)
  const text = `{"k":"${long}\n{"next":"line"}`
  expect(() => members(text, 0, text.indexOf('\n'))).toThrow(
    expect.objectContaining({ at: text.indexOf('\n') }) as Error,
  )
  const never = `{"k":"${long}`
  expect(() => members(never, 0, never.length)).toThrow(
    expect.objectContaining({ at: never.length }) as Error,
  )
})

test.each([
  [
    'members',
    mostParts / 2,
    (n: number) => `{"v":{${Array.from({ length: n - 1 }, (_, i) => `"${i}":1`).join()}}}`,
  ],
  ['elements', mostParts, (n: number) => `{"v":[${Array.from({ length: n - 2 }, () => '{}').join()}]}`],
])('so many %s are read where they are counted, and one more is refused', (_what, most, text) => {
  const scan = (n: number, bounded: boolean) => members(text(n), 0, text(n).length, { bounded })
  expect(scan(most, true)).toHaveLength(1)
  expect(scan(most + 1, false)).toHaveLength(1)
  expect(() => scan(most + 1, true)).toThrow(
    expect.objectContaining({
      kind: 'parts',
      message: expect.stringContaining(`${mostParts} keys`) as string,
    }),
  )
})

test('an object that is listed has fewer', () => {
  const text = `{"in":{${Array.from({ length: mostListed + 1 }, (_, i) => `"${i}":1`).join()}}}`
  const scan = (inside: string[]) => members(text, 0, text.length, { bounded: true, inside: new Set(inside) })
  expect(scan([])).toHaveLength(1)
  expect(() => scan(['in'])).toThrow(expect.objectContaining({ kind: 'parts' }))
})

test('a key has so many characters where they are counted, and no more', () => {
  const scan = (length: number, bounded: boolean) => {
    const text = `{"in":{"${'k'.repeat(length)}":1}}`
    return members(text, 0, text.length, { bounded })
  }
  expect(scan(mostKey, true)).toHaveLength(1)
  expect(scan(mostKey + 1, false)).toHaveLength(1)
  expect(() => scan(mostKey + 1, true)).toThrow(expect.objectContaining({ kind: 'parts' }))
})

test('a key is the same however it is written, and no other key is', () => {
  const letters = ['a', 'é', '漢', '🙂', '"', '\\', '\n', '\u007f', '/', '\ud83d', '\ude42', '\0']
  const word = fc
    .array(fc.constantFrom(...letters), { minLength: 1, maxLength: 4 })
    .map((all) => all.join(''))
  const escaped = (text: string): string =>
    `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`
  const spelt = fc.tuple(word, fc.boolean()).map(([said, isEscaped]) => ({
    said,
    json: isEscaped ? escaped(said) : JSON.stringify(said),
  }))
  fc.assert(
    fc.property(fc.array(spelt, { minLength: 2, maxLength: 20 }), (keys) => {
      const text = latin1(`{"in":{${keys.map(({ json }) => `${json}:0`).join()}}}`)
      const isTwice = new Set(keys.map(({ said }) => said)).size < keys.length
      const scan = (): unknown => members(text, 0, text.length, { unique: true })
      if (isTwice) expect(scan).toThrow(expect.objectContaining({ kind: 'duplicate' }))
      else expect(scan).not.toThrow()
    }),
    { numRuns: 2000 },
  )
})
