// The 2026-07-28 era asks a person by a result: what waits is counted, silence is a no, and nothing is earned before the end.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { Questions } from '../../src/supervisor/questions/questions.ts'
import { allowAll, askableMeta, attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { tempDir } from '../support/temp-dir.ts'

const asking = (elicitation: Partial<ServerSettings['elicitation']> = {}, questions = new Questions()) =>
  attach(
    serverSettings('asks-person.mjs', {
      args: [fixture('asks-person.mjs'), 'modern'],
      elicitation: { enabled: true, timeoutMs: 60_000, queue: 16, ...elicitation },
    }),
    { questions },
  )

/** `_meta` of a request to raw-script.mjs that tells it what to say. */
const askableWith = (lines: string): string =>
  JSON.stringify({ ...askableMeta, '@reply': Buffer.from(lines).toString('base64') })

let lastId = 0
async function call(host: HostEnd, more: object = {}) {
  const id = ++lastId
  const params = { name: 'ask', arguments: { fields: ['name'] }, _meta: askableMeta, ...more }
  host.send({ jsonrpc: '2.0', id, method: 'tools/call', params })
  return (await host.answer(id)).result as unknown as {
    resultType: string
    requestState: string
    structuredContent?: { action: string; characters: number }
  }
}
const said = { who: { action: 'accept', content: { name: 'Ann' } } }
const isAsked = { resultType: 'input_required' }
const accepted = { structuredContent: { action: 'accept', characters: 3 } }
const declined = { structuredContent: { action: 'decline', characters: 0 } }

test('an answer in time is the person’s own', async () => {
  await using host = await asking()
  const { requestState } = await call(host)
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(accepted)
  expect(host.eventsOf('session/declined')).toEqual([])
})

test('a question that nobody answers in time is declined with a notice, and so is the answer that comes later', async () => {
  await using host = await asking({ timeoutMs: 200 })
  const { requestState } = await call(host)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  expect(host.eventsOf('session/declined')[0]?.detail).toMatchObject({
    method: 'tools/call',
    reason: 'no answer within elicitation.timeout_ms (200)',
  })
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(declined)
  expect(host.eventsOf('session/declined')[1]?.detail['reason']).toBe(
    'the answer came after elicitation.timeout_ms (200)',
  )
  // It is no yes the second time either: the one that was refused may be sent again.
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(declined)
  expect(JSON.stringify(host.governed.records())).not.toContain('Ann')
})

test('questions are told apart by the server’s state, and without one by what it was asked', async () => {
  await using dir = await tempDir()
  const record = join(dir.path, 'received')
  const questions = new Questions()
  const scripted = (timeoutMs: number) => {
    const elicitation = { enabled: true, timeoutMs, queue: 16 }
    const args = [fixture('raw-script.mjs'), record]
    return attach(serverSettings('raw-script.mjs', { args, elicitation }), { questions })
  }
  await using patient = await scripted(60_000)
  await using host = await scripted(200)
  const question = '"inputRequests":{"who":{"method":"elicitation/create","params":{"message":"m"}}}'
  const told = (id: number, result: string): string =>
    `"_meta":${askableWith(`{"jsonrpc":"2.0","id":${id},"result":${result}}\n`)}`
  const of = (id: number, rest: string): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t",${rest}}}`
  host.send(of(1, told(1, `{"resultType":"input_required",${question}}`)))
  await host.answer(1)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  host.send(of(2, `"inputResponses":{"who":{"action":"accept","content":{}}},${told(2, '{}')}`))
  await host.answer(2)
  expect(host.eventsOf('session/declined')).toHaveLength(2)

  host.send(of(3, told(3, `{"resultType":"input_required","requestState":"old",${question}}`)))
  await host.answer(3)
  await eventually(() => questions.count() === 0)
  patient.send(of(4, told(4, `{"resultType":"input_required","requestState":"new",${question}}`)))
  await patient.answer(4)
  for (const [n, [state, action]] of [
    ['old', 'decline'],
    ['new', 'accept'],
  ].entries()) {
    const answer = '"inputResponses":{"who":{"action":"accept","content":{}}}'
    patient.send(of(5 + n, `${answer},"requestState":"${state}",${told(5 + n, '{}')}`))
    await patient.answer(5 + n)
    const received = readFileSync(record, 'utf8').trimEnd().split('\n').at(-1)
    expect(received).toContain(`"action":"${action}"`)
  }
})

test('questions of all results together wait up to the bound of the queue; an answer makes room', async () => {
  await using host = await asking({ queue: 2 })
  const { requestState } = await call(host)
  expect(await call(host)).toMatchObject(isAsked)
  expect(await call(host)).toMatchObject(declined)
  expect(host.eventsOf('session/input-answered')[0]?.detail['reason']).toBe(
    'elicitation.queue (2) questions wait already',
  )
  expect(await call(host, { inputResponses: said, requestState })).toMatchObject(accepted)
  expect(await call(host)).toMatchObject(isAsked)
  expect(await call(host)).toMatchObject(declined)
})

test('time makes room, too', async () => {
  await using host = await asking({ queue: 1, timeoutMs: 200 })
  expect(await call(host)).toMatchObject(isAsked)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  expect(await call(host)).toMatchObject(isAsked)
})

test('a tool earns nothing by asking, and once by answering', async () => {
  await using host = await asking()
  const { ledger } = host.governed.governance
  const outcomes = () =>
    host.governed
      .records()
      .filter(({ type }) => type === 'call.outcome')
      .map(({ body }) => (body as { outcome: string }).outcome)
  const { requestState } = await call(host)
  await eventually(() => outcomes().length === 1)
  expect(outcomes()).toEqual(['input-required'])
  expect(ledger.trust('fixture', 'ask').evidence).toBe(0)
  await call(host, { inputResponses: said, requestState })
  await eventually(() => outcomes().length === 2)
  expect(outcomes()).toEqual(['input-required', 'result'])
  expect(ledger.trust('fixture', 'ask').evidence).toBe(1)
})

test('an answer by another session of the same principal is in time, or too late, as by the first', async () => {
  const questions = new Questions()
  await using patient = await asking({ queue: 1 }, questions)
  await using hasty = await asking({ timeoutMs: 200, queue: 1 }, questions)
  const { requestState } = await call(patient)
  expect(await call(hasty)).toMatchObject(declined) // the queue is the principal's
  expect(await call(hasty, { inputResponses: said, requestState })).toMatchObject(accepted)
  await call(hasty)
  await eventually(() => hasty.eventsOf('session/declined').length === 1)
  expect(await call(patient, { inputResponses: said, requestState })).toMatchObject(declined)
  expect(patient.eventsOf('session/declined')).toHaveLength(1)
})

test('a question outlives the session that it was asked in', async () => {
  const questions = new Questions()
  let requestState = ''
  {
    await using first = await asking({ timeoutMs: 200 }, questions)
    requestState = (await call(first)).requestState
  }
  await using second = await asking({}, questions)
  await eventually(() => questions.count() === 0)
  expect(await call(second, { inputResponses: said, requestState })).toMatchObject(declined)
})

test.each(['an answer', 'a notification'])(
  'a question of a task that %s tells of has its time, once',
  async (how) => {
    await using dir = await tempDir()
    const record = join(dir.path, 'received')
    const args = [fixture('raw-script.mjs'), record]
    const elicitation = { enabled: true, timeoutMs: 200, queue: 2 }
    await using host = await attach(serverSettings('raw-script.mjs', { args, elicitation }))
    let id = 0
    const ask = (method: string, params: string, ...replies: readonly string[]) => {
      id += 1
      const told = replies
        .map((reply) => (reply.startsWith('"method"') ? reply : `"id":${id},"result":${reply}`))
        .map((members) => `{"jsonrpc":"2.0",${members}}\n`)
      const meta = `"_meta":${askableWith(told.join(''))}`
      host.send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},${meta}}}`)
      return host.answer(id)
    }
    const task = (names: readonly string[]): string =>
      `{"taskId":"k","status":"input_required","inputRequests":{${names
        .map((name) => `"${name}":{"method":"elicitation/create","params":{}}`)
        .join(',')}}}`
    const poll = (...names: readonly string[]) =>
      how === 'an answer'
        ? ask('tasks/get', '"taskId":"k"', task(names))
        : ask('tasks/list', '"x":1', `"method":"notifications/tasks","params":${task(names)}`, '{"tasks":[]}')
    const answer = (name: string) =>
      ask('tasks/update', `"taskId":"k","inputResponses":{"${name}":{"action":"accept","content":{}}}`, '{}')
    const received = (name: string) =>
      readFileSync(record, 'utf8')
        .split('\n')
        .filter((line) => line.includes('tasks/update') && line.includes(`"${name}":`))
        .map((line) => /"action":"(\w+)"/.exec(line)?.[1])

    await ask('tools/call', '"name":"t"', '{"resultType":"task","taskId":"k","status":"working"}')
    await ask('subscriptions/listen', '"notifications":{"taskIds":["k"]}', '{}')
    await poll('a', 'b')
    await answer('a')
    expect(received('a')).toEqual(['accept'])
    expect((await poll('a', 'b')).error).toBeUndefined() // what waits already takes no second place in the queue
    await eventually(() => host.eventsOf('session/declined').length === 1)
    await poll('b')
    await poll('b', 'c')
    await answer('b')
    await answer('c')
    await answer('b')
    expect(received('b')).toEqual(['decline', 'decline'])
    expect(received('c')).toEqual(['accept'])
  },
)

test.each([
  '"resultType":"complete","ResultType":"input_required","InputRequests":{"who":{"method":"elicitation/create"}}',
  '"ResultType":"input_required","inputRequests":{"who":{"method":"sampling/createMessage"}}',
  '"Status":"input_required","inputRequests":{"who":{"method":"elicitation/create"}}',
  '"__proto__":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create"}}}',
  '"resultType":"input_required","inputRequests":{"who":{"method":"roots/list","__proto__":{"method":"elicitation/create"}}}',
  '"resultType":"complete","inputRequests":{"who":{"method":"elicitation/create"}}',
  '"resultType":"input_required","inputRequests":[{"method":"elicitation/create"}]',
  '"resultType":"input_required","inputRequests":{"who":{"method":"roots/list","Method":"elicitation/create"}}',
  '"resultType":"input_required","inputRequests":{"who":{"method":"roots/list","method":"elicitation/create"}}',
  '"resultType":"input_required","inputRequests":{"who":[{"method":"elicitation/create"}]}',
])('what one reader takes for a question and another does not is refused: %s', async (members) => {
  await using host = await attach(serverSettings('raw-script.mjs'))
  const line = `{"jsonrpc":"2.0","id":1,"result":{"content":[],${members}}}\n`
  const _meta = { ...askableMeta, '@reply': Buffer.from(line).toString('base64') }
  host.send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'x:1', _meta } })
  expect((await host.answer(1)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
  expect(host.lines.join('\n')).not.toContain('elicitation/create')
})

test.each([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tasks/list',
  'subscriptions/listen',
])(
  'a question that comes by the result of %s reaches no host, whatever the server may ask',
  async (method) => {
    for (const enabled of [false, true]) {
      const elicitation = { enabled, timeoutMs: 60_000, queue: 16 }
      await using host = await attach(serverSettings('raw-script.mjs', { elicitation, sampling: enabled }), {
        era: 'modern',
      })
      const asked = '"who":{"method":"elicitation/create"},"what":{"method":"roots/list"}'
      const members = `"resultType":"input_required","inputRequests":{${asked}},"supportedVersions":["2026-07-28"]`
      const line = `{"jsonrpc":"2.0","id":1,"result":{${members}}}\n`
      const _meta = { ...askableMeta, '@reply': Buffer.from(line).toString('base64') }
      host.send({ jsonrpc: '2.0', id: 1, method, params: { notifications: {}, _meta } })
      expect((await host.answer(1)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
      expect(host.lines.join('\n')).not.toContain('inputRequests')
    }
  },
)

test.each([
  '"who":{"method":"elicitation/create","params":{"message":"Your password?"},"params":{"message":"Your name?"}}',
  '"who":{"method":"elicitation/create","params":{"message":"Your name?"},"Params":{"message":"Your password?"}}',
])('a question that can be read as another one is refused where questions are on: %s', async (asked) => {
  const elicitation = { enabled: true, timeoutMs: 60_000, queue: 16 }
  await using host = await attach(serverSettings('raw-script.mjs', { elicitation }))
  const line = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{${asked}}}}\n`
  const _meta = { ...askableMeta, '@reply': Buffer.from(line).toString('base64') }
  host.send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'x:1', _meta } })
  expect((await host.answer(1)).error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
  expect(host.lines.join('\n')).not.toContain('password')
})

test('a subscription that policy denies declares nothing: by a task nobody is asked until one was sent', async () => {
  const elicitation = { enabled: true, timeoutMs: 60_000, queue: 2 }
  const denied = { permission: 'mcp:*:resources/subscribe', action: 'deny', where: {}, origin: 'no' } as const
  await using host = await attach(serverSettings('raw-script.mjs', { elicitation }), {
    rules: [denied, ...allowAll],
  })
  let id = 0
  const ask = (method: string, params: string, result: string, before = '') => {
    id += 1
    const meta = `"_meta":${askableWith(`${before}{"jsonrpc":"2.0","id":${id},"result":${result}}\n`)}`
    host.send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},${meta}}}`)
    return host.answer(id)
  }
  const asked = '"inputRequests":{"a":{"method":"elicitation/create","params":{}}}'
  const task = `{"taskId":"k","status":"input_required",${asked}}`
  const notice = `{"jsonrpc":"2.0","method":"notifications/tasks","params":${task}}\n`
  const told = async (): Promise<boolean> => {
    await ask('tasks/list', '"x":1', '{"tasks":[]}', notice)
    return host.lines.some((line) => line.includes('notifications/tasks'))
  }
  await ask('tools/call', '"name":"t"', '{"resultType":"task","taskId":"k","status":"working"}')
  const subscribed = await ask(
    'subscriptions/listen',
    '"notifications":{"resourceSubscriptions":["x:1"]}',
    '{}',
  )
  expect(subscribed.error).toMatchObject({ data: { code: 'ERR_POLICY_DENIED' } })
  expect(await told()).toBe(false)
  await ask('subscriptions/listen', '"notifications":{"taskIds":["k"]}', '{}')
  expect(await told()).toBe(true)
})

const all = {
  a: { action: 'accept', content: { password: 'hunter22' } },
  A: { Action: 'accept', Content: { password: 'hunter22' } },
  t: 'hunter22',
  m: { role: 'assistant', content: { type: 'text', text: 'hunter22' }, model: 'm' },
  r: { roots: [{ uri: 'file:///hunter22' }] },
  R: { action: 'accept', Roots: [{ uri: 'file:///hunter22' }] },
}
const on = { enabled: true, timeoutMs: 60_000, queue: 16 }
const off = { enabled: false, timeoutMs: 60_000, queue: 16 }

test.each<readonly [string, Partial<ServerSettings>, readonly string[]]>([
  ['may ask for nothing', { elicitation: off, sampling: false }, []],
  ['is sandboxed', { trust: 'sandboxed', elicitation: on, sampling: true }, []],
  ['may ask a person', { elicitation: on, sampling: false }, ['a', 'A', 't']],
  ['may ask a model', { elicitation: off, sampling: true }, ['m']],
  ['may ask both', { elicitation: on, sampling: true }, ['a', 'A', 't', 'm']],
])('a server that %s is given no other answer, whoever makes it up', async (_what, more, given) => {
  await using dir = await tempDir()
  const record = join(dir.path, 'received')
  const args = [fixture('raw-script.mjs'), record]
  const tools = { allow: ['t'], deny: [], readOnly: [] }
  await using host = await attach(serverSettings('raw-script.mjs', { args, tools, ...more }), {
    era: 'modern',
  })
  const ask = async (id: number, method: string, params: object) => {
    const reply = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}\n`).toString('base64')
    host.send({
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, _meta: { ...askableMeta, '@reply': reply } },
    })
    await host.answer(id)
    const line = readFileSync(record, 'utf8').trimEnd().split('\n').at(-1) ?? ''
    return (JSON.parse(line) as { params: { inputResponses: unknown } }).params.inputResponses
  }
  const no = { action: 'decline' }
  const expected = Object.fromEntries(
    Object.entries(all).map(([name, answer]) => [name, given.includes(name) ? answer : no]),
  )
  expect(await ask(1, 'tools/call', { name: 't', arguments: {}, inputResponses: all })).toEqual(expected)
  expect(await ask(2, 'prompts/list', { inputResponses: all })).toEqual(expected)
  expect(await ask(3, 'tools/call', { name: 't', inputResponses: ['hunter22'] })).toEqual({})
  expect(host.eventsOf('session/declined').length).toBeGreaterThan(0)
  expect(JSON.stringify(host.governed.records())).not.toContain('hunter22')
})

test('a state that can be read in two ways is an error for whom it was for, and the session goes on', async () => {
  await using host = await attach(serverSettings('raw-script.mjs'), { era: 'modern' })
  const said = (id: number, result: string) => ({
    ...askableMeta,
    '@reply': Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}\n`).toString('base64'),
  })
  const asked = '{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}'
  const call = (id: number, result: string) =>
    host.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 't', _meta: said(id, result) } })
  call(1, `${asked},"requestState":{"a":1,"a":2}}`)
  expect((await host.answer(1)).error).toMatchObject({
    message: expect.stringContaining('its requestState can be read in two ways') as string,
    data: { code: 'ERR_METHOD_REFUSED' },
  })
  call(2, '{}')
  expect((await host.answer(2)).result).toEqual({})
})
