// Of an answer only that is a person's own which the question does not say: a server can't have its own words taken for one.
import { expect, test } from 'vitest'
import { givenIn, givenInAll, wordsOf } from '../../../src/supervisor/questions/given.ts'
import { Questions } from '../../../src/supervisor/questions/questions.ts'

const question = JSON.stringify({
  message: 'Type DROP TABLE users to confirm, ann@example.com',
  requestedSchema: {
    properties: {
      plan: { enum: ['first', 'second'], enumNames: ['The First'] },
      many: { items: { anyOf: [{ const: 'red', title: 'Red' }] } },
      port: { type: 'integer', default: 8080 },
    },
  },
})
const accept = (content: unknown): string => JSON.stringify({ action: 'accept', content })

test('texts and numbers of an answer are a person’s own, in lists too', () => {
  const content = { a: 'Ann', b: 48151623, c: ['one', 'two'], d: true, e: null }
  expect(givenIn(accept(content), question).toSorted()).toEqual(['48151623', 'Ann', 'one', 'two'])
  expect(givenIn('{"action":"accept","content":{"n":12345678901234567891}}', question)).toContain(
    '12345678901234567891',
  )
})

test.each([
  'DROP TABLE users',
  'first',
  'The First',
  'red',
  'Red',
  8080,
  'ann@example.com',
  'requestedSchema',
])('what the question says itself, as %j, is not', (value) => {
  expect(givenIn(accept({ a: value, b: [value] }), question)).toEqual([])
})

test('what declines or cancels, or is no answer, says nothing', () => {
  for (const said of ['{"action":"decline","content":{"a":"Ann"}}', '{"role":"user"}', '[]', 'null', '3'])
    expect(givenIn(said, question)).toEqual([])
})

test('of a question that is too long to be remembered nothing is taken for a person’s own', () => {
  const long = `"${'x'.repeat(70_000)}"`
  expect(wordsOf(long, { start: 0, end: long.length })).toBeNull()
  expect(givenIn(accept({ a: 'Ann Other' }), null)).toEqual([])
})

test('of very many words and answers the first are looked at, so that nobody waits for all of them', () => {
  const words = Array.from({ length: 10_000 }, (_, n) => `word ${n}`)
  expect(givenIn(accept({ a: words }), question)).toHaveLength(64)
  const all = words.map((word) => accept({ a: word }))
  expect(givenInAll(all, question)).toEqual(words.slice(0, 64))
})

test('what a task asks is remembered over all that it asks, and what a result asks until it is answered', () => {
  const questions = new Questions()
  const key = { state: 'k', request: 'r' }
  const ask = { names: ['a'], timeoutMs: 60_000, expired: () => undefined }
  expect(questions.words(key)).toBe('')
  questions.ask({ key, words: '{"x":1}', ...ask })
  expect(questions.words(key)).toBe('{"x":1}')
  questions.answer(key)
  expect(questions.words(key)).toBe('')
  for (const words of ['"first"', '"second"', '"first"']) questions.tasks.ask({ task: 't', words, ...ask })
  expect(questions.tasks.words('t')).toBe('["first","second"]')
  questions.tasks.ask({ task: 't', words: 'x'.repeat(70_000), ...ask })
  expect(questions.tasks.words('t')).toBeNull()
  expect(questions.tasks.words('u')).toBe('')
})
