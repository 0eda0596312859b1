// The thread that judges arguments answers every question, and goes when it does not.
import { expect, test } from 'vitest'
import { ArgumentJudge } from '../../src/schema/argument-judge.ts'

const honest = { type: 'object', properties: { text: { pattern: '^[a-z]+$' } } }
const slow = { type: 'object', properties: { text: { pattern: '^(a+)+$' } } }
const ask = (judge: ArgumentJudge, digest: string, schema: unknown, text: unknown) =>
  judge.ask({ digest, schema, value: { text } })

test('one thread answers one question after another', async () => {
  await using judge = new ArgumentJudge()
  for (let n = 0; n < 5; n += 1) {
    expect(await ask(judge, 'honest', honest, 'abc')).toBeNull()
    expect(await ask(judge, 'honest', honest, 'ABC')).toContain('arguments/text')
  }
})

test('questions that come together are answered in their order, whatever one of them is', async () => {
  await using judge = new ArgumentJudge()
  const answers = await Promise.all([
    ask(judge, 'honest', honest, 'abc'),
    ask(judge, 'slow', slow, `${'a'.repeat(50)}!`),
    ask(judge, 'honest', honest, 'ABC'),
    ask(judge, 'slow', slow, 'b'),
    ask(judge, 'honest', honest, 'abc'),
  ])
  expect(answers).toEqual([
    null,
    expect.stringContaining('longer than 500 ms'),
    expect.stringContaining('arguments/text'),
    expect.stringContaining('longer than 500 ms'),
    null,
  ])
})

test('only own members count as there', async () => {
  await using judge = new ArgumentJudge()
  const required = { type: 'object', required: ['constructor'], not: { required: ['toString'] } }
  expect(await ask(judge, 'required', required, 'x')).toContain('constructor')
  const own = { constructor: 1 }
  expect(await judge.ask({ digest: 'required', schema: required, value: own })).toBeNull()
})

test('disposing answers whoever waits', async () => {
  const judge = new ArgumentJudge()
  const first = ask(judge, 'slow', slow, `${'a'.repeat(50)}!`)
  const second = ask(judge, 'honest', honest, 'abc')
  await judge[Symbol.asyncDispose]()
  expect(await second).toBe('Sallyport is stopping')
  expect(await first).toContain('refused')
})
