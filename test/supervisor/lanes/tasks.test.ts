// A call that begins a task ends when the task does, in both eras; and a task is its own principal's alone.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { JournalRecord } from '../../../src/journal/record.ts'
import type { Rule } from '../../../src/schema/settings.ts'
import { RawJson } from '../../../src/lib/raw-json.ts'
import { taskBegun, TaskIds, Tasks } from '../../../src/supervisor/lanes/tasks.ts'
import { allowAll, askableMeta, attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { patienceMs } from '../../support/patience.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, superviseAll } from '../../support/supervisor.ts'

const eras = ['2025-11-25', '2026-07-28'] as const
type Era = (typeof eras)[number]

async function ready(
  era: Era,
  more: Parameters<typeof attach>[1] = {},
  callMs = 30_000,
  elicitation = { enabled: false, timeoutMs: 60_000, queue: 16 },
  instance: 'session' | 'call' = 'session',
): Promise<HostEnd> {
  const args = [fixture('tasks.mjs'), era === '2026-07-28' ? 'modern' : 'legacy']
  const timeouts = { initializeMs: 10_000, callMs, idleMs: 60_000 }
  const host = await attach(serverSettings('tasks.mjs', { args, timeouts, elicitation, instance }), more)
  if (era === '2025-11-25') {
    host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: era } })
    await host.answer('i')
  }
  return host
}

let lastId = 0
async function ask(
  host: HostEnd,
  method: string,
  params: object,
): Promise<Awaited<ReturnType<HostEnd['answer']>>> {
  const id = ++lastId
  host.send({ jsonrpc: '2.0', id, method, params })
  return host.answer(id)
}
const call = (host: HostEnd, name: string, args: object = {}) =>
  ask(host, 'tools/call', { name, arguments: args, ...(name === 'work' && { task: { ttl: 60_000 } }) })

const bodies = (host: HostEnd, type: string, subject: string): readonly JournalRecord['body'][] =>
  host.governed
    .records()
    .filter((record) => record.type === type)
    .map(({ body }) => body)
    .filter((body) => (body as { subject: string }).subject === subject)

/** The outcome of the call that began the task, once there is one. */
const ended = (host: HostEnd) =>
  eventually(() => bodies(host, 'call.outcome', 'work').length > 0 && bodies(host, 'call.outcome', 'work'))

test.each(['"task"', String.raw`"\u0074ask"`, String.raw`"t\u0061s\u006b"`])(
  'in 2026-07-28 a result whose type is %s begins a task',
  (type) => {
    const said = `{"resultType":${type},"taskId":"k","status":"working"}`
    expect(taskBegun(said, false, false)).toEqual({ id: 'k', status: 'working', ttlMs: null })
    expect(taskBegun(said.replace(type, '"other"'), false, false)).toBe(null)
  },
)

test.each(eras)('in %s the call has no outcome before its task is over', async (era) => {
  await using host = await ready(era)
  await call(host, 'work')
  expect((await ask(host, 'tasks/get', { taskId: 't0' })).result).toMatchObject({ status: 'working' })
  await call(host, 'set', { taskId: 't0', status: 'input_required' })
  await ask(host, 'tasks/get', { taskId: 't0' })
  await eventually(() => bodies(host, 'call.outcome', 'tasks/get').length === 2)
  expect(bodies(host, 'call.outcome', 'work')).toEqual([])
  await call(host, 'set', { taskId: 't0', status: 'completed' })
  await ask(host, 'tasks/get', { taskId: 't0' })
  expect(await ended(host)).toMatchObject([{ outcome: 'result', kind: 'tool' }])
  expect(bodies(host, 'call.intent', 'work')).toHaveLength(1)
})

test.each(eras)('in %s a notification ends it, too, with what became of it', async (era) => {
  await using host = await ready(era)
  await call(host, 'work')
  await call(host, 'set', { taskId: 't0', status: 'failed', notify: true })
  expect(await ended(host)).toMatchObject([{ outcome: 'tool-error' }])
  expect(host.lines.some((line) => line.includes('notifications/tasks'))).toBe(true)
})

test.each(eras)('in %s a task that is cancelled ends its call as cancelled', async (era) => {
  await using host = await ready(era)
  await call(host, 'work')
  await ask(host, 'tasks/cancel', { taskId: 't0' })
  expect(await ended(host)).toMatchObject([{ outcome: 'cancelled' }])
})

test('tasks/result waits for its task beyond call_ms, and ends the call', async () => {
  await using host = await ready('2025-11-25', {}, 300)
  await call(host, 'work')
  const asked = performance.now()
  const result = ask(host, 'tasks/result', { taskId: 't0' })
  await eventually(() => performance.now() - asked > 600)
  expect(bodies(host, 'call.outcome', 'work')).toEqual([])
  await call(host, 'set', { taskId: 't0', status: 'completed' })
  expect((await result).result).toMatchObject({ content: [{ text: 'completed' }] })
  expect(await ended(host)).toMatchObject([{ outcome: 'result' }])
})

test.each(eras)('in %s a task that is never over ends with its time to live', async (era) => {
  await using host = await ready(era)
  await call(host, 'work', { ttl: 100 })
  expect(await ended(host)).toMatchObject([
    { outcome: 'timeout', detail: 'the task did not end within its time to live (100 ms)' },
  ])
})

test.each(eras)('in %s a task that the session takes with it is lost', async (era) => {
  await using host = await ready(era)
  await call(host, 'work')
  host.socket.destroy()
  await host.session.ended
  expect(await ended(host)).toMatchObject([{ outcome: 'lost' }])
})

test('a result that merely has a member of that name is no task', async () => {
  await using host = await ready('2025-11-25')
  await call(host, 'plain')
  await eventually(() => bodies(host, 'call.outcome', 'plain').length === 1)
  expect((await ask(host, 'tasks/get', { taskId: 'no task' })).error?.data).toMatchObject({
    code: 'ERR_TASK_NOT_FOUND',
  })
})

test.each(eras)('in %s a host cannot speak of a task that it did not create', async (era) => {
  await using host = await ready(era)
  await call(host, 'work')
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']) {
    for (const params of [{ taskId: 'somebody else’s' }, { taskId: 1 }, {}])
      expect((await ask(host, method, params)).error?.data).toMatchObject({ code: 'ERR_TASK_NOT_FOUND' })
    expect(bodies(host, 'call.denied', method)).toHaveLength(3)
    expect(bodies(host, 'call.intent', method)).toEqual([])
  }
})

test('a list of tasks holds the host’s own', async () => {
  await using host = await ready('2025-11-25')
  await call(host, 'work')
  const { tasks } = (await ask(host, 'tasks/list', {})).result as unknown as { tasks: { taskId: string }[] }
  expect(tasks.map(({ taskId }) => taskId)).toEqual(['t0'])
})

test('another session of the same principal may ask its own server about it, and nobody else’s', async () => {
  const tasks = new TaskIds()
  await using first = await ready('2025-11-25', { tasks })
  await call(first, 'work', { taskId: 'shared' })
  await using second = await ready('2025-11-25', { tasks })
  await call(second, 'work')
  await using other = await ready('2025-11-25')
  await call(other, 'work')
  expect((await ask(second, 'tasks/get', { taskId: 'shared' })).error).toMatchObject({
    message: 'no such task',
  })
  expect((await ask(other, 'tasks/get', { taskId: 'shared' })).error?.data).toMatchObject({
    code: 'ERR_TASK_NOT_FOUND',
  })
})

test.each(['tasks/get', 'a notification'])(
  'a question that %s tells of, and nobody answers in time, is answered with no, and whoever waits for the task hears how it goes on',
  async (how) => {
    const elicitation = { enabled: true, timeoutMs: 200, queue: 16 }
    await using host = await ready('2026-07-28', {}, 30_000, elicitation)
    await call(host, 'work')
    const question = { method: 'elicitation/create', params: { message: 'who are you?' } }
    const inputRequests = { 'wer fragt, Jörg?': question, other: question }
    const asking = { taskId: 't0', status: 'input_required', inputRequests }
    await ask(host, 'subscriptions/listen', { notifications: { taskIds: ['t0'] }, _meta: askableMeta })
    await call(host, 'set', { ...asking, notify: how === 'a notification' })
    if (how === 'tasks/get') await ask(host, 'tasks/get', { taskId: 't0', _meta: askableMeta })
    await eventually(() => host.lines.some((line) => line.includes('"completed"')))
    expect(host.lines.at(-1)).toContain('"inputResponses":{"wer fragt, Jörg?":{"action":"decline"}')
    expect(await ended(host)).toMatchObject([{ outcome: 'result', kind: 'tool' }])
    expect(host.eventsOf('session/declined')).toHaveLength(1)
    expect(host.lines.some((line) => line.includes('sallyport-'))).toBe(false) // its answer is nobody else's
  },
)

test('what a person answers a task is in no record, however the server says it again', async () => {
  const elicitation = { enabled: true, timeoutMs: 30_000, queue: 16 }
  await using host = await ready('2026-07-28', {}, 30_000, elicitation)
  await call(host, 'work')
  const question = { method: 'elicitation/create', params: { message: 'who are you?' } }
  const asking = { taskId: 't0', status: 'input_required', inputRequests: { who: question } }
  await ask(host, 'subscriptions/listen', { notifications: { taskIds: ['t0'] }, _meta: askableMeta })
  await call(host, 'set', { ...asking, notify: true })
  const content = { name: 'Ann Person', pin: '17' }
  const inputResponses = { who: { action: 'accept', content } }
  await ask(host, 'tasks/update', { taskId: 't0', inputResponses, _meta: askableMeta })
  const [outcome] = (await ended(host)) as readonly { response?: string }[]
  expect(host.lines.some((line) => line.includes('"pin":"17"'))).toBe(true)
  expect(JSON.parse(outcome?.response ?? '')).toMatchObject({
    status: 'completed',
    inputResponses: '[not recorded]',
  })
  await call(host, 'announce', { taskId: 't0', status: 'working', note: `it was ${content.name}` })
  await call(host, 'plain', { text: content.name }) // what is asked is recorded as it is
  const written = JSON.stringify(host.governed.records())
  expect(written).not.toContain('\\"pin\\":\\"17')
  expect(written.split(content.name)).toHaveLength(3)
})

test('tasks obey their rules', async () => {
  const deny: Rule = { permission: 'mcp:fixture:tasks/*', action: 'deny', where: {}, origin: 'rules[0]' }
  await using host = await ready('2025-11-25', { rules: [deny, ...allowAll] })
  await call(host, 'work')
  expect((await ask(host, 'tasks/cancel', { taskId: 't0' })).error?.data).toMatchObject({
    code: 'ERR_POLICY_DENIED',
  })
})

test('a task that asks for what is off is an error to the host, and its notification does not reach it', async () => {
  await using host = await attach(serverSettings('raw-script.mjs'))
  const telling = (id: number, method: string, params: string, ...lines: string[]): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},"_meta":{"@reply":"${Buffer.from(lines.map((line) => `${line}\n`).join('')).toString('base64')}"}}}`
  const task = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"k","status":"working"}}'
  host.send(telling(1, 'tools/call', '"name":"t"', task))
  await host.answer(1)
  const asks =
    '"taskId":"k","status":"input_required","inputRequests":{"e":{"method":"elicitation/create","params":{}}}'
  const told = `{"jsonrpc":"2.0","method":"notifications/tasks","params":{${asks}}}`
  const answered = `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",${asks}}}`
  host.send(telling(2, 'tasks/get', '"taskId":"k"', told, answered))
  expect((await host.answer(2)).error?.data).toMatchObject({ code: 'ERR_METHOD_REFUSED' })
  expect(host.lines).toHaveLength(2)
})

test('a control call that is answered with a task is told that it can’t follow it, and is no result', async () => {
  const args = [fixture('tasks.mjs'), 'modern']
  await using all = await superviseAll([serverSettings('tasks.mjs', { args })])
  const asked = { server: 'fixture', tool: 'work', timeoutMs: null, generation: null, lineage: null }
  const answer = await all.supervisor.call(
    caller(),
    { ...asked, arguments: new RawJson('{}') },
    { signal: AbortSignal.timeout(patienceMs) },
  )
  const said = 'the tool began a task, which a control call cannot follow'
  expect(answer).toMatchObject({ type: 'error', error_text: said })
  const outcome = await eventually(() => all.governed.records().find(({ type }) => type === 'call.outcome'))
  expect(outcome?.body).toMatchObject({ outcome: 'lost', detail: said })
  expect(all.governed.governance.ledger.trust('fixture', 'work').evidence).toBe(0)
})

test('what a server says of a task in one breath with the answer that begins it reaches the host, and ends its call', async () => {
  await using host = await attach(serverSettings('raw-script.mjs'))
  const result = { resultType: 'task', taskId: 't7', status: 'working' }
  const over = { taskId: 't7', status: 'completed' }
  const said = [
    { jsonrpc: '2.0', id: 1, result },
    { jsonrpc: '2.0', method: 'notifications/tasks', params: over },
  ]
  const reply = Buffer.from(said.map((one) => `${JSON.stringify(one)}\n`).join('')).toString('base64')
  const params = { name: 't', arguments: {}, _meta: { '@reply': reply } }
  host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  await eventually(() => host.lines.some((line) => line.includes('notifications/tasks')))
  await eventually(() => bodies(host, 'call.outcome', 't').length > 0)
  expect(bodies(host, 'call.outcome', 't')).toMatchObject([{ outcome: 'result' }])
})

test.each(eras)(
  'in %s a call in a process of its own comes to no task, which would end with that',
  async (era) => {
    await using host = await ready(era, {}, undefined, undefined, 'call')
    const { error } = await call(host, 'work')
    expect(error).toMatchObject({ data: { code: 'ERR_METHOD_REFUSED' } })
    expect(error?.message).toMatch(/task.*process.*set instance: session/)
    const outcomes = bodies(host, 'call.outcome', 'work')
    if (era === '2025-11-25') expect(bodies(host, 'call.intent', 'work')).toEqual([])
    else expect(outcomes).toMatchObject([{ outcome: 'lost', detail: error?.message }])
    expect(host.governed.governance.ledger.trust('fixture', 'work').evidence).toBe(0)
  },
)

test('a task whose end came while the thread stood still, past its time to live, ended so', async () => {
  const { promise: kind, resolve } = Promise.withResolvers<string>()
  const tasks = new Tasks(new TaskIds())
  await turn() // behind which the timers come, and then the descriptors
  const server = spawn('/bin/echo', ['here'], { stdio: ['ignore', 'pipe', 'ignore'] })
  tasks.begin({ id: 't', status: 'working', ttlMs: 50 }, '{}', resolve)
  void once(server.stdout, 'data').then(() =>
    tasks.heard({ id: 't', status: 'completed', ttlMs: null }, '{}'),
  )
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  expect(await kind).toBe('result')
})
