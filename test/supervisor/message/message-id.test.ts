// Ids are compared by value, whatever their spelling; what is no id has none.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { messageId } from '../../../src/supervisor/message/message-id.ts'

const digits = fc.array(fc.nat(9), { minLength: 1, maxLength: 20 }).map((all) => all.join(''))
const number = fc
  .tuple(fc.constantFrom('', '-'), digits, fc.constantFrom('', '.0', '.5', 'e2'))
  .filter(([, whole]) => whole === '0' || !whole.startsWith('0'))
  .map((parts) => parts.join(''))

test('a number has the key of the double that it is, and is echoed as it was written', () => {
  const examples = ['0', '-0', '7', '-7', '999999999999999', '-999999999999999', '9007199254740993']
  const holds = (literal: string): void => {
    expect(messageId(literal)).toEqual({ raw: literal, key: `n${Number(literal)}` })
  }
  for (const literal of examples) holds(literal)
  fc.assert(fc.property(number, holds))
})

test('a text is no number of the same letters', () => {
  expect(messageId('"7"')).toEqual({ raw: '"7"', key: 's7' })
  expect(messageId('"\\u0037"')?.key).toBe('s7')
})

test.each(['null', 'true', '{}', '[]', '1e999'])('%s is no id', (literal) => {
  expect(messageId(literal)).toBeNull()
})
