import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { members } from '../../../src/lib/json-scan.ts'
import {
  type Envelope,
  readEnvelope,
  readUnambiguous,
  type Request,
} from '../../../src/supervisor/message/envelope.ts'
import { Likeness } from '../../../src/supervisor/message/likeness.ts'

const call =
  '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,"b"]}}}'
const samples = [
  call,
  '{"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"e\\u0041","arguments":{}},"jsonrpc":"2.0","id":"x"}',
  ' { "id" : -1.5 , "params" : { "uri" : "a:b" } , "jsonrpc" : "2.0" , "method" : "resources/read" }',
]
const answers = [
  '{"result":{"content":[{"type":"text","text":"0123"}],"isError":false},"jsonrpc":"2.0","id":7}',
  '{"jsonrpc":"2.0","id":"x","result":{"tools":[]},"further":null}',
]
/** Like none of the others. */
const strange = {
  request: '{"id":1,"method":"m","jsonrpc":"2.0","params":{"p":0}}',
  answer: '{"id":1,"jsonrpc":"2.0","result":{"p":0}}',
}

type Read = (text: string, start: number, end: number, bytes: Uint8Array) => Envelope

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')

/** Reads so often that it is learnt from, where it is unlike what was learnt before. */
const learn = (read: Read, line: string): void => {
  for (let n = 0; n < 4; n++) read(line, 0, line.length, bytesOf(line))
}

/** As it comes: lines before and behind it. */
const within = (line: string): string => `{}\n${line}\n${call}\n`
const readWithin = (read: Read, line: string): Envelope =>
  read(within(line), 3, 3 + line.length, bytesOf(within(line)))

/** Members in the place of others, or beside them. */
const more = [',"name":1', ',"id":7', '"id":7,', '{"name":0}', '"ID":1,']

function* mutations(line: string): Iterable<string> {
  const put = [...'"{}[],:\\ \t\r0-eé\u0000'.split(''), ...more]
  for (let at = 0; at <= line.length; at++) {
    yield `${line.slice(0, at)}${line.slice(at + 1)}`
    yield line.slice(0, at)
    for (const text of put) {
      yield `${line.slice(0, at)}${text}${line.slice(at)}`
      yield `${line.slice(0, at)}${text}${line.slice(at + 1)}`
    }
  }
}

const plain = (envelope: Envelope): unknown =>
  envelope.kind === 'invalid'
    ? { ...envelope, error: [envelope.error.code, envelope.error.message] }
    : envelope

describe.each([
  { what: 'requests', read: readUnambiguous, lines: samples, other: strange.request },
  { what: 'answers', read: readEnvelope, lines: answers, other: strange.answer },
])('$what that are like one before', ({ read, lines, other }) => {
  test.each(lines)('are read as from the beginning, whatever stands elsewhere in them: %s', (line) => {
    const all = [line, ...mutations(line)]
    const fromBeginning = all.map((one) => {
      learn(read, other)
      return plain(readWithin(read, one))
    })
    const wrong = all.filter((one, n) => {
      learn(read, line)
      return !isDeepStrictEqual(plain(readWithin(read, one)), fromBeginning[n])
    })
    expect(wrong).toEqual([])
  })
})

/** Has learnt from the call. */
function knowing(): Likeness {
  const likeness = new Likeness(true)
  const found = members(call, 0, call.length, { inside: new Set(['params']) })
  const body = found.find(({ key }) => key === 'params')
  if (body !== undefined) likeness.learn(call, 0, call.length, { method: 'tools/call', body }, found)
  return likeness
}

test('a message whose values alone are others is known by the one before', () => {
  const next = call.replace('7', '"eight"').replace('"echo"', '"another"').replace('[1,"b"]', '{"deep":{}}')
  expect(new Likeness(true).read(bytesOf(next), next, 0, next.length)).toBeNull()
  const known = knowing().read(bytesOf(next), next, 0, next.length)
  const { id, method, params } = readUnambiguous(next, 0, next.length) as Request
  expect(known).toMatchObject({ id, method, body: params })
})

test('an object that says a key twice is not known by one before that did not', () => {
  const twice = call.replace('"a":', '"a":1,"a":')
  expect(knowing().read(bytesOf(twice), twice, 0, twice.length)).toBeNull()
})

test('a message of more parts than are read is not known by one before that had few', () => {
  learn(readUnambiguous, call)
  const many = call.replace('1,', '1,'.repeat(250_000))
  expect(readUnambiguous(many, 0, many.length, bytesOf(many))).toMatchObject({
    kind: 'invalid',
    error: { code: 'ERR_MESSAGE_TOO_LARGE' },
  })
})

test('nor one with a longer key than is read, however many were like it', () => {
  learn(readUnambiguous, call)
  for (const [length, kind] of [
    [16_383, 'request'],
    [16_384, 'invalid'],
  ] as const) {
    const long = call.replace('"a"', `"${'k'.repeat(length)}"`)
    expect(readUnambiguous(long, 0, long.length, bytesOf(long)).kind).toBe(kind)
  }
})
