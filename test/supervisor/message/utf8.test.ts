import { expect, test } from 'vitest'
import { utf8 } from '../../../src/supervisor/message/utf8.ts'

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

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
