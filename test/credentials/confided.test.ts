// What persons told servers: found in what those say, in JSON without breaking it, and remembered within bounds.
import { expect, test } from 'vitest'
import { Confided } from '../../src/credentials/confided.ts'

const told = (...values: readonly string[]): NonNullable<ReturnType<Confided['of']>> => {
  const confided = new Confided()
  confided.add('s', '1000', values)
  const of = confided.of('s', '1000')
  if (of === null) throw new Error('nothing is looked for')
  return of
}
const mark = '[redacted:an answer]'

test.each(['y', '1', 'yes', 'abc', '999', '', 'true', 'False', 'NULL'])('%j is not looked for', (value) => {
  const confided = new Confided()
  confided.add('s', '1000', [value])
  expect(confided.of('s', '1000')).toBeNull()
})

test.each([
  ['text', '{"type":"text","text":"a text, and text"}', `{"type":"${mark}","text":"a ${mark}, and ${mark}"}`],
  ['4711', '{"n":4711,"m":-4711,"t":"no. 4711"}', `{"n":"${mark}","m":-4711,"t":"no. ${mark}"}`],
  ['4711', '[14711,47110,4711.5,4711]', `[14711,47110,4711.5,"${mark}"]`],
  ['ann@example.com', '{"ann@example.com":[1,"ann@example.com"]}', `{"${mark}":[1,"${mark}"]}`],
  ['two\nlines "quoted"', '{"a":"two\\nlines \\u0022quoted\\""}', `{"a":"${mark}"}`],
  ['npm_token', '{"a":"x\\npm_token"}', '{"a":"x\\npm_token"}'],
  ['hunter2hunter2', '{"a":"aHVudGVyMmh1bnRlcjI="}', `{"a":"${mark}I="}`],
])('of JSON that has %j in it a JSON text is left', (value, json, kept) => {
  expect(told(value).redact(json).text).toBe(kept)
  expect(() => JSON.parse(kept)).not.toThrow()
})

test('a text in which nothing was told stays as it is, to the byte', () => {
  const json = ' { "a" : "x\\u0041\\/" , "n" : 1.50e+2 } '
  expect(told('something else').redact(json)).toEqual({ text: json, hits: 0 })
})

test('in a long text the same is found', async () => {
  const json = JSON.stringify({
    a: 'x'.repeat(300_000),
    b: ['Ann of Green Gables', 48151623],
    c: 'y'.repeat(300_000),
  })
  const kept = await told('Ann of Green Gables', '48151623').redactLong(json)
  expect(JSON.parse(kept.text)).toMatchObject({ b: [mark, mark] })
})

test('a long answer is found piece by piece, whatever is left out of it', () => {
  const essay = Array.from({ length: 400 }, (_, n) => `sentence ${n} 🙂`).join('. ')
  const { text } = told(essay).redact(JSON.stringify({ said: essay, part: essay.slice(1000, 4000) }))
  for (const n of [0, 1, 199, 300, 398]) expect(text).not.toContain(`sentence ${n} `)
})

test('a stream that flows already loses what is told meanwhile', () => {
  const confided = new Confided()
  const stream = confided.stream('s', '1000')
  const push = (text: string): string => Buffer.from(stream.push(Buffer.from(text))).toString()
  expect(push('Ann Other\n')).toBe('Ann Other\n')
  confided.add('s', '1000', ['Ann Other'])
  expect(push('it is Ann O') + push('ther\n')).toBe(`it is ${mark}\n`)
  confided.add('s', '2000', ['nobody else'])
  expect(push('nobody else\n')).toBe('nobody else\n')
})

test('the servers and principals that were told longest ago are forgotten first, and of each the oldest values', () => {
  const confided = new Confided()
  for (let n = 0; n < 200; n++) confided.add(`s${n}`, '1000', [`value of ${n}`])
  expect(confided.of('s0', '1000')).toBeNull()
  expect(confided.of('s199', '1000')).not.toBeNull()
  for (let n = 0; n < 100; n++) confided.add('s199', '1000', [`secret word ${n};`])
  const kept = confided.of('s199', '1000')?.redact('["secret word 10;","secret word 99;"]').text
  expect(kept).toBe(`["secret word 10;","${mark}"]`)
})
