import { expect, test } from 'vitest'
import { utf8 } from '../../../src/supervisor/message/utf8.ts'

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

test('in each text, whatever was found in the one before and in other parts of the same', () => {
  const [plain, other] = [latin1('a{b}'), latin1('é}')]
  for (const text of [plain, other + plain, plain, plain + other, other])
    for (const [start, end] of [
      [0, 1],
      [0, text.length],
      [text.length - 1, text.length],
      [0, 2],
    ] as const)
      expect(utf8(text, start, end)).toBe(Buffer.from(text.slice(start, end), 'latin1').toString('utf8'))
})

test.each([10, 1024, 1025, 65_536, 65_537, 200_000])(
  'of %i characters, each beyond ASCII is found',
  (length) => {
    const plain = 'a'.repeat(length)
    expect(utf8(`[${plain}]`, 1, length + 1)).toBe(plain)
    for (const at of [0, 1, 500, 1024, 65_535, 65_536, length - 1].filter((at) => at < length)) {
      const text = `${plain.slice(0, at)}é漢${plain.slice(at)}`
      const read = latin1(text)
      expect(utf8(`[${read}]`, 1, read.length + 1)).toBe(text)
    }
  },
)
