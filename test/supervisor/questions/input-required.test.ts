// What a result asks for may be much: what the host declared is read once for it, and there is an end to it.
import { expect, test } from 'vitest'
import { gateOf } from '../../../src/call/gate.ts'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import { readEnvelope } from '../../../src/supervisor/message/envelope.ts'
import { type InputVerdict, judgeInput } from '../../../src/supervisor/questions/input-required.ts'
import { serverSettings } from '../../support/server-settings.ts'

/** The verdict on so many questions of one kind, and how often the host's capabilities were read for it. */
function judged(
  questions: number,
  method: string,
  settings: Partial<ServerSettings>,
  length = 1,
): { readonly verdict: InputVerdict; readonly reads: number } {
  const asked = Array.from(
    { length: questions },
    (_, i) => `"${'q'.padEnd(length, 'x')}${i}":{"method":"${method}","params":{}}`,
  )
  const line = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{${asked.join()}}}}`
  const envelope = readEnvelope(line, 0, line.length)
  if (envelope.kind !== 'response' || envelope.result === null) throw new Error('that is no result')
  let reads = 0
  const declared = () => (reads++, { form: true, url: true, sampling: true })
  const server = serverSettings('echo.mjs', settings)
  const host = { waiting: () => 0, declared }
  return { verdict: judgeInput(line, envelope.result, server, gateOf([]), host), reads }
}

const elicitation = { enabled: true, timeoutMs: 60_000, queue: 1024 }

test.each([
  ['elicitation/create', { elicitation }],
  ['sampling/createMessage', { sampling: true }],
] as const)('what the host declared is read once for however many questions: %s', (method, settings) => {
  const { verdict, reads } = judged(500, method, settings)
  expect(verdict.action).toBe('pass')
  expect(reads).toBe(1)
})

test('a result that asks for more at once than any queue holds is refused, whatever it asks for', () => {
  for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list']) {
    const most = judged(1024, method, { elicitation, sampling: true })
    expect(most.verdict.action).toBe(method === 'roots/list' ? 'answer' : 'pass')
    const { verdict, reads } = judged(1025, method, { elicitation, sampling: true })
    expect(verdict).toMatchObject({ action: 'refuse', asked: 'more than 1024 things at once' })
    expect(reads).toBe(0)
  }
})

test('a result that asks under a longer name than is remembered is refused', () => {
  expect(judged(1, 'elicitation/create', { elicitation }, 1023).verdict.action).toBe('pass')
  const { verdict } = judged(1, 'elicitation/create', { elicitation }, 1024)
  expect(verdict).toMatchObject({
    action: 'refuse',
    asked: 'something under a name of more than 1024 characters',
  })
})

test('roots beside a question that goes to the host are refused as that, and not as something that is off', () => {
  const text =
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"},"q":{"method":"elicitation/create","params":{}}}}}'
  const asked = (more: object): InputVerdict => {
    const envelope = readEnvelope(text, 0, text.length)
    if (envelope.kind !== 'response' || envelope.result === null) throw new Error('that is no result')
    const host = { waiting: () => 0, declared: () => ({ form: true, url: true, sampling: true }) }
    return judgeInput(text, envelope.result, serverSettings('echo.mjs', more), gateOf([]), host)
  }
  expect(asked({ elicitation })).toEqual({
    action: 'refuse',
    asked: 'roots together with what a host answers',
    reason: 'roots are told alone',
  })
  expect(asked({}).action).toBe('answer')
})

test.each(['ping', 'tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel', 'tools/call', 'x/y'])(
  'no result asks for anything but a person, a model and the roots, whatever is on: %s',
  (method) => {
    const { verdict } = judged(1, method, { elicitation, sampling: true })
    expect(verdict).toEqual({ action: 'refuse', asked: method, reason: 'no server may ask for it' })
  },
)
