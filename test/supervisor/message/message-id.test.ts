// Ids are compared by value, whatever their spelling; what is no id has none.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readUnambiguous } from '../../../src/supervisor/message/envelope.ts'
import { longestId, messageId } from '../../../src/supervisor/message/message-id.ts'
import { living } from '../../support/collect.ts'

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

test('an id is as long as it may be, and no longer', () => {
  const letters = 'é'.repeat((longestId - 2) / 2) // in latin1 reading two for each
  const longest = Buffer.from(JSON.stringify(letters)).toString('latin1')
  expect(messageId(longest)).toEqual({ raw: longest, key: `s${letters}` })
  expect(messageId(`"${'x'.repeat(longestId - 1)}"`)).toBeNull()
  expect(messageId(`1${'.'.padEnd(longestId, '0')}`)).toBeNull()
  const said = `{"jsonrpc":"2.0","id":"${'x'.repeat(longestId)}","method":"ping"}`
  expect(readUnambiguous(said, 0, said.length)).toMatchObject({
    kind: 'invalid',
    id: null,
    error: { code: 'ERR_INVALID_REQUEST', message: expect.stringContaining(`${longestId} bytes`) as string },
  })
})

test('what is kept of a message by its id is the id, and not the line that it stood in', () => {
  const ids: unknown[] = []
  const before = living()
  for (let n = 0; n < 20; n++) {
    const long = 'x'.repeat(1024 * 1024)
    const line = `{"jsonrpc":"2.0","id":"request-number-${n}","method":"tools/call","params":{"arguments":{"long":"${long}"}}}`
    const said = readUnambiguous(line, 0, line.length)
    if (said.kind === 'request') ids.push(said.id)
  }
  expect(living() - before).toBeLessThan(4 * 1024 * 1024)
  expect(ids).toHaveLength(20)
})
