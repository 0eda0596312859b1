// What one batch is sealed with, held against Node's own HMAC.
import { createHmac, hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BatchBytes } from '../../src/journal/batch-bytes.ts'
import {
  decodeRecord,
  flawOfBatch,
  genesis,
  type JournalRecord,
  layOutBatch,
  originOf,
  type Position,
  type Seal,
} from '../../src/journal/record.ts'

const entry = { type: 'call.intent', body: '{"call":"c-1"}' }
const origin = originOf(new Date(0), 'd-1', 1)
const start: Position = { seq: 0, hash: genesis }
const keys = fc.uint8Array({ minLength: 0, maxLength: 64 })
const before = fc.constantFrom('', 'ab'.repeat(32))

const sealedWith = (seal: Seal): { hash: string; mac: string } =>
  layOutBatch(new BatchBytes(), [entry], origin, start, seal)
const macOf = (key: Uint8Array, text: string): string => createHmac('sha256', key).update(text).digest('hex')

test('the MAC is HMAC-SHA256 of the hash and of the MAC before it, under any key of up to a block', () => {
  fc.assert(
    fc.property(keys, before, (key, after) => {
      const sealed = sealedWith({ key, after })
      expect(sealed.mac).toBe(macOf(key, sealed.hash + after))
    }),
  )
})

test('one key does not leave anything behind for the next', () => {
  const [short, long] = [new Uint8Array(3).fill(1), new Uint8Array(64).fill(2)]
  for (const key of [long, short, long])
    for (const after of ['ab'.repeat(32), '']) {
      const sealed = sealedWith({ key, after })
      expect(sealed.mac).toBe(macOf(key, sealed.hash + after))
    }
})

test('nothing is sealed with a longer one', () => {
  expect(() => sealedWith({ key: new Uint8Array(65), after: '' })).toThrow('expected at most 64')
})

const key = new Uint8Array(32).fill(7)
const seal = { key, after: '' }

/** A batch as it is in the file, but for its last newline. */
function batchOf(count: number, previous = start): string {
  const bytes = new BatchBytes()
  layOutBatch(
    bytes,
    Array.from({ length: count }, () => entry),
    origin,
    previous,
    seal,
  )
  return bytes.bytes.toString().trimEnd()
}

function flawOf(text: string, expected: Seal | null = seal, previous = start): string | null {
  const records = text.split('\n').map((line, n) => decodeRecord(line, previous.seq + 1 + n))
  const wrong = records.find((one) => 'kind' in one)
  return (
    (wrong ?? flawOfBatch(Buffer.from(text), records.at(-1) as JournalRecord, previous, expected))?.kind ??
    null
  )
}

test.each([1, 2, 64])(
  'another key, another MAC before it, or another byte is seen in a batch of %i',
  (count) => {
    const text = batchOf(count)
    expect(flawOf(text)).toBeNull()
    expect(flawOf(text, null)).toBeNull()
    expect(flawOf(text, { key: new Uint8Array(32), after: '' })).toBe('mac')
    expect(flawOf(text, { key, after: 'ab'.repeat(32) })).toBe('mac')
    const lines = text.split('\n')
    for (const n of lines.keys())
      expect(flawOf(lines.with(n, (lines[n] ?? '').replace('c-1', 'c-2')).join('\n'))).toBe('hash')
  },
)

test('the hash is that of every byte before it, the hash of the batch before among them', () => {
  const text = batchOf(3, { seq: 4, hash: 'ab'.repeat(32) })
  const [covered = '', digest] = text.split(/,"hash":"(\w+)","mac":"\w+"\}$/)
  expect(covered).toContain(`,"prev":"${'ab'.repeat(32)}"`)
  expect(digest).toBe(hash('sha256', covered))
  expect(flawOf(text, seal, { seq: 4, hash: genesis })).toBe('chain')
  expect(flawOf(text, seal, { seq: 5, hash: 'ab'.repeat(32) })).toBe('chain')
})
