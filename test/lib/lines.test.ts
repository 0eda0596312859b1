import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineSplitter } from '../../src/lib/lines.ts'
import { processorMs } from '../support/processor-time.ts'

function splitter(limit: number) {
  const lines: string[] = []
  const long: { head: string; tail: string; size: number }[] = []
  const heads: string[] = []
  const made = new LineSplitter(limit, {
    line: (bytes, text, start, end) => {
      expect(bytes.toString('latin1', start, end)).toBe(text.slice(start, end))
      expect(bytes[end]).toBe(10)
      lines.push(text.slice(start, end))
    },
    overlong: (head) => heads.push(head.toString('latin1')),
    overlongEnd: (tail, size) => long.push({ head: heads.at(-1) ?? '', tail: tail.toString('latin1'), size }),
  })
  return { made, lines, long }
}

test('however the bytes are cut, the lines are the same', () => {
  const line = fc.string({ unit: fc.constantFrom('a', '\r', 'é', '\0', '\ufeff'), maxLength: 30 })
  fc.assert(
    fc.property(
      fc.array(line),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      fc.integer({ min: 5, max: 40 }),
      (texts, cuts, limit) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''))
        const { made, lines, long } = splitter(limit)
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = cuts[turn % cuts.length] ?? 1
          made.push(bytes.subarray(at, at + size))
          at += size
        }
        const all = texts.map((text) => Buffer.from(text).toString('latin1'))
        expect(lines).toEqual(all.filter((text) => text.length <= limit))
        const over = all.filter((text) => text.length > limit)
        expect(long.map(({ size }) => size)).toEqual(over.map((text) => text.length))
        for (const [index, text] of over.entries()) {
          expect(text.startsWith(long[index]?.head ?? '?')).toBe(true)
          expect(text.endsWith(long[index]?.tail ?? '?')).toBe(true)
        }
      },
    ),
    { examples: [[['aaéaa'], [7], 5]] },
  )
})

test('no more lines are taken at once than are asked for, and none is lost or read twice', () => {
  const { made, lines } = splitter(100)
  made.push(Buffer.from('be'))
  const pieces: string[] = []
  for (let rest: Buffer = Buffer.from('gun\none\ntwo\nthree\nfour\nfi'); rest.length > 0;) {
    pieces.push(rest.toString())
    rest = made.push(rest, 2)
  }
  expect(pieces).toEqual(['gun\none\ntwo\nthree\nfour\nfi', 'three\nfour\nfi'])
  expect(lines).toEqual(['begun', 'one', 'two', 'three', 'four'])
  expect(made.push(Buffer.from('ve\n'), 2)).toHaveLength(0)
  expect(lines.at(-1)).toBe('five')
})

test('what is held of a line without end stays within the limit', () => {
  const { made, long } = splitter(1000)
  for (let i = 0; i < 100_000; i++) made.push(Buffer.from('x'))
  expect(made.pending).toBe(100_000)
  made.push(Buffer.from('end\n'))
  expect(long).toHaveLength(1)
  expect(long[0]?.size).toBe(100_003)
  expect(long[0]?.tail.endsWith('xend')).toBe(true)
})

test('a line that arrives in small pieces costs time in proportion to its length', () => {
  const { made, lines } = splitter(20_000_000)
  const piece = Buffer.alloc(1000, 'x')
  const took = processorMs(() => {
    for (let i = 0; i < 10_000; i++) made.push(piece)
    made.push(Buffer.from('\n'))
  })
  expect(lines[0]).toHaveLength(10_000_000)
  expect(took).toBeLessThan(2000)
})
