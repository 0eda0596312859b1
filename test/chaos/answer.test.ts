import { expect, test } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { refusalLine } from '../../src/supervisor/governed/refusal-line.ts'
import { endOf, parsed } from './answer.ts'

test.each([
  ['call', 'ERR_APPROVAL_DENIED'],
  ['call', 'ERR_ARGUMENTS_INVALID'],
  ['call', 'ERR_BUSY'],
  ['other', 'ERR_APPROVAL_DENIED'],
] as const)('a request (%s) that is refused with %s has ended so, however a host is told', (route, code) => {
  const held = { request: { id: { raw: '1' }, route }, asksTask: false } as unknown as Parameters<
    typeof refusalLine
  >[0]
  const line = refusalLine(held, new SallyportError(code, 'no'), true)
  expect(endOf(parsed(line) ?? {})).toMatchObject({ end: code, words: expect.stringContaining('no') })
})

test('an answer of the server is one, also where it tells of an error of its own', () => {
  const own = parsed('{"id":1,"result":{"content":[],"isError":true}}') ?? {}
  expect(endOf(own)).toEqual({ end: 'done', words: '' })
  expect(endOf({ id: 1, error: { message: 'no such method' } })).toEqual({
    end: 'error',
    words: 'no such method',
  })
})
