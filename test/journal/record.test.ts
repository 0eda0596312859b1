// What one record is sealed with, held against Node's own HMAC.
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeRecord, encodeRecord, genesis, originOf, type Position } from '../../src/journal/record.ts'

const entry = { type: 'call.intent', body: '{"call":"c-1"}' }
const origin = originOf(new Date(0), 'd-1', 1)
const start: Position = { seq: 0, hash: genesis }
const keys = fc.uint8Array({ minLength: 0, maxLength: 64 })
const before = fc.constantFrom('', 'ab'.repeat(32))

test('the MAC is HMAC-SHA256 of the hash and of the MAC before it, under any key of up to a block', () => {
  fc.assert(
    fc.property(keys, before, (key, after) => {
      const { hash, mac } = encodeRecord(entry, origin, start, { key, after })
      expect(mac).toBe(
        createHmac('sha256', key)
          .update(hash + after)
          .digest('hex'),
      )
    }),
  )
})

test('one key does not leave anything behind for the next', () => {
  const [short, long] = [new Uint8Array(3).fill(1), new Uint8Array(64).fill(2)]
  for (const key of [long, short, long])
    for (const after of ['ab'.repeat(32), '']) {
      const { hash, mac } = encodeRecord(entry, origin, start, { key, after })
      expect(mac).toBe(
        createHmac('sha256', key)
          .update(hash + after)
          .digest('hex'),
      )
    }
})

test('nothing is sealed with a longer one', () => {
  const key = new Uint8Array(65)
  expect(() => encodeRecord(entry, origin, start, { key, after: '' })).toThrow('expected at most 64')
})

test('another key, another MAC before it, or another byte is seen', () => {
  const key = new Uint8Array(32).fill(7)
  const { line } = encodeRecord(entry, origin, start, { key, after: '' })
  const text = line.trimEnd()
  expect(decodeRecord(text, start, { key, after: '' })).toMatchObject({ seq: 1, type: 'call.intent' })
  expect(decodeRecord(text, start, { key: new Uint8Array(32), after: '' })).toMatchObject({ kind: 'mac' })
  expect(decodeRecord(text, start, { key, after: 'ab'.repeat(32) })).toMatchObject({ kind: 'mac' })
  expect(decodeRecord(text.replace('c-1', 'c-2'), start, { key, after: '' })).toMatchObject({ kind: 'hash' })
})
