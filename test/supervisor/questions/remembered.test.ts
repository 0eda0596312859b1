// What is remembered of questions is theirs, and not all that their servers said with them.
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { questionKey, Questions } from '../../../src/supervisor/questions/questions.ts'
import { living } from '../../support/collect.ts'

const longLine = (n: number): string => String.fromCharCode(97 + n).repeat(1024 * 1024)
const how = { timeoutMs: 60_000, expired: () => undefined }

test.each([
  [
    'a result',
    (questions: Questions, line: string) => {
      const inner = [{ key: 'requestState', start: 0, end: line.length, inner: [] }]
      const key = questionKey('tools/call', { text: line, inner })
      questions.ask({ ...how, key, names: [line.slice(0, 20)], words: line.slice(20, 100) })
    },
  ],
  [
    'a task',
    (questions: Questions, line: string) =>
      questions.tasks.ask({
        ...how,
        task: line.slice(0, 30),
        names: [line.slice(0, 20)],
        words: line.slice(20, 100),
      }),
  ],
])(
  'of a question that %s asked the names and words are kept, and not the line that they stood in',
  (_, ask) => {
    const questions = new Questions()
    const before = living()
    for (let n = 0; n < 20; n++) ask(questions, longLine(n))
    expect(living() - before).toBeLessThan(4 * 1024 * 1024)
    expect(questions.count()).toBe(20)
  },
)

const round = (n: number): readonly string[] =>
  Array.from({ length: 16 }, (_, k) => `${n} ${k} `.padEnd(1000, 'x'))

test('of what a task asked again and again nothing waits for its time once it is answered', () => {
  const questions = new Questions()
  const before = living()
  for (let n = 0; n < 500; n++) {
    const names = round(n)
    questions.tasks.ask({ ...how, task: 'k', names, words: null })
    questions.tasks.answer('k', names)
  }
  expect(questions.count()).toBe(0)
  expect(living() - before).toBeLessThan(4 * 1024 * 1024)
})

test('of all tasks together no more is remembered than there is room for, the last of it at any rate', () => {
  const questions = new Questions()
  const before = living()
  for (let n = 0; n < 100; n++) {
    const names = Array.from({ length: 1024 }, (_, k) => `${n} ${k} `.padEnd(1000, 'x'))
    questions.tasks.ask({ ...how, task: `${n}`, names, words: `"${n}"` })
    questions.tasks.answer(`${n}`, names)
  }
  expect(living() - before).toBeLessThan(64 * 1024 * 1024)
  expect(questions.tasks.words('99')).toBe('["99"]')
  expect(questions.tasks.words('0')).toBe('')
})

test('of answers that may have been another’s no more are disputed than a few', async () => {
  const questions = new Questions()
  const key = { state: 's', request: 'r' }
  const ask = (timeoutMs: number, n: number): void =>
    questions.ask({ ...how, timeoutMs, key, names: round(n), words: 'x'.repeat(20_000) })
  ask(1, 0)
  await delay(50)
  const before = living()
  for (let n = 0; n < 1000; n++) {
    ask(how.timeoutMs, n)
    expect(questions.answer(key)).toEqual([])
  }
  expect(living() - before).toBeLessThan(8 * 1024 * 1024)
})
