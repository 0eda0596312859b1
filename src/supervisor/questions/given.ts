// What a person answered that the question does not say itself: only that can have been kept from the server until then.
import { utf8 } from '../message/utf8.ts'
import type { Span } from '../../lib/json-scan.ts'
import { parseWritten, WrittenNumber } from '../../lib/one-way.ts'

/** Bytes of a question that are remembered; of what a longer one is answered nothing is taken for a person's own */
const longestQuestion = 65_536
/** Characters of an answer that is read; nor of what is in a longer one */
const longestAnswer = 262_144

/** A question's words, to hold its answer against; null where there are too many. */
export const wordsOf = (text: string, { start, end }: Span): string | null =>
  end - start > longestQuestion ? null : utf8(text, start, end)

/** Words of one answer, and answers of one request, that are looked at */
const most = { words: 64, answers: 64 } as const

/** The texts and numbers of these answers of one request; of very many the first. */
export const givenInAll = (answers: readonly string[], question: string | null): readonly string[] =>
  answers
    .slice(0, most.answers)
    .flatMap((answer) => givenIn(answer, question))
    .slice(0, most.words)

/**
 * The texts and numbers of an answer (the JSON of `{action, content}`) that are not in the question. What a server offers,
 * or has a person copy, is its own: it could take out of the record whatever it likes, if that were.
 */
export function givenIn(answer: string, question: string | null): readonly string[] {
  if (question === null || answer.length > longestAnswer) return []
  const said = parseWritten(answer)
  if (member(said, 'action') !== 'accept') return []
  const given = [...new Set(wordsIn(member(said, 'content'), false))].slice(0, most.words)
  if (given.length === 0) return []
  const asked = question === '' ? '' : wordsIn(parseWritten(question), true).join('\n')
  return given.filter((word) => !asked.includes(word))
}

/** The texts and numbers of a value, with its members' names or without. */
function wordsIn(value: unknown, hasNames: boolean): readonly string[] {
  const words: string[] = []
  const left = [value]
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (typeof one === 'string') words.push(one)
    else if (typeof one === 'number') words.push(String(one))
    else if (one instanceof WrittenNumber) words.push(one.written, String(one.read))
    else if (typeof one === 'object' && one !== null) {
      if (hasNames && !Array.isArray(one)) words.push(...Object.keys(one))
      for (const inner of Object.values(one)) left.push(inner)
    }
  }
  return words
}

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined
