import { expect, test } from 'vitest'
import { rememberedOnce } from '../../src/lib/remembered.ts'

test('of texts one after the other, only what is new is worked out, and each gets its own result', () => {
  const worked: string[] = []
  const work = rememberedOnce((text) => {
    worked.push(text)
    return `<${text}>`
  })
  const long = 'x'.repeat(300)
  for (const text of ['', '', 'a', 'a', 'b', 'a', long, long, 'a']) expect(work(text)).toBe(`<${text}>`)
  expect(worked).toEqual(['', 'a', 'b', 'a', long, long])
})
