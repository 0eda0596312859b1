// `subscriptions/listen`: each resource and each task in it is asked about once, and a host hears of no task but its own.
import { expect, test } from 'vitest'
import type { Rule } from '../../../src/schema/settings.ts'
import { mostListened } from '../../../src/supervisor/lanes/listen.ts'
import { TaskIds } from '../../../src/supervisor/lanes/tasks.ts'
import { attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

const uris = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `file:///r/${n}`)
const listen = (notifications: unknown, id: number | string = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'subscriptions/listen',
  params: { notifications },
})
/** A server that writes down what it hears and answers it with a result that says so. */
const echoing = () => serverSettings('raw-echo.mjs')

const intents = (host: HostEnd, subject: string) =>
  host.governed
    .records()
    .filter(({ type }) => type === 'call.intent')
    .map(({ body }) => body as { subject: string; request: string })
    .filter((body) => body.subject === subject)

test('what a long list costs grows with the list, not with its square', async () => {
  await using host = await attach(echoing())
  const recorded = async (count: number): Promise<number> => {
    const before = intents(host, 'resources/subscribe').length
    const asked = listen({ resourceSubscriptions: uris(count) }, `n${count}`)
    host.send(asked)
    await eventually(() => intents(host, 'resources/subscribe').length === before + count)
    const all = intents(host, 'resources/subscribe').slice(before)
    expect(all.map(({ request }) => request)).toEqual([
      JSON.stringify(asked.params),
      ...uris(count)
        .slice(1)
        .map((uri) => JSON.stringify({ uri })),
    ])
    return all.reduce((sum, { request }) => sum + request.length, 0)
  }
  const [few, many] = [await recorded(mostListened / 8), await recorded(mostListened)]
  expect(many).toBeLessThan(few * 10)
})

test.each<[string, unknown, string, RegExp]>([
  [
    'one resource too many',
    { resourceSubscriptions: uris(mostListened + 1) },
    'ERR_INVALID_REQUEST',
    /resourceSubscriptions .*: got 257, expected at most 256/,
  ],
  [
    'one task too many',
    { taskIds: uris(mostListened + 1) },
    'ERR_INVALID_REQUEST',
    /taskIds .*: got 257, expected at most 256/,
  ],
  ['no object', [{ resourceSubscriptions: ['file:///r'] }], 'ERR_INVALID_REQUEST', /expected an object/],
  [
    'what names things by another name',
    { resources: ['file:///r'] },
    'ERR_INVALID_REQUEST',
    /notifications\.resources of .*what policy knows nothing of/,
  ],
  [
    'what names things where none are named',
    { resourcesListChanged: ['file:///r'] },
    'ERR_INVALID_REQUEST',
    /notifications\.resourcesListChanged of .*what policy knows nothing of/,
  ],
  ['no list', { resourceSubscriptions: 'file:///r' }, 'ERR_INVALID_REQUEST', /expected a list of texts/],
  [
    'no texts',
    { resourceSubscriptions: [{ uri: 'file:///r' }] },
    'ERR_INVALID_REQUEST',
    /expected a list of texts/,
  ],
  [
    'another spelling',
    { ResourceSubscriptions: ['file:///r'] },
    'ERR_MESSAGE_AMBIGUOUS',
    /"ResourceSubscriptions"/,
  ],
  [
    'a prototype',
    JSON.parse('{"__proto__":{"resourceSubscriptions":["file:///r"]}}') as object,
    'ERR_MESSAGE_AMBIGUOUS',
    /"__proto__"/,
  ],
  ['another spelling of tasks', { taskIds: ['t'], taskids: ['t'] }, 'ERR_MESSAGE_AMBIGUOUS', /"taskids"/],
])('%s is refused, and nothing of it reaches the server', async (_what, notifications, code, words) => {
  await using host = await attach(echoing())
  host.send(listen(notifications))
  const { error } = await host.answer(1)
  expect(error?.data?.['code']).toBe(code)
  expect(error?.message).toMatch(words)
  expect(host.launches()).toBe(0)
})

test.each([{}, { notifications: {} }])(
  'things that are named beside its notifications are refused: %j',
  async (params) => {
    await using host = await attach(echoing())
    host.send({ ...listen({}), params: { ...params, resourceSubscriptions: ['file:///r'] } })
    const { error } = await host.answer(1)
    expect(error?.data?.['code']).toBe('ERR_INVALID_REQUEST')
    expect(error?.message).toMatch(/params\.resourceSubscriptions of .* expected .*_meta beside it/)
    expect(host.launches()).toBe(0)
  },
)

test('what nobody knows, and names nothing, passes', async () => {
  await using host = await attach(echoing())
  host.send(listen({ otherListChanged: true }))
  await eventually(() => host.launches() === 1)
})

test('a resource that stands twice is asked about once, and one that is denied takes the whole with it', async () => {
  const rules: readonly Rule[] = [
    {
      permission: 'mcp:*:resources/subscribe',
      action: 'deny',
      where: { '/uri': 'file:///secret' },
      origin: 'rules[0]',
    },
    { permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[1]' },
  ]
  await using host = await attach(echoing(), { rules })
  host.send(listen({ resourceSubscriptions: ['file:///a', 'file:///a'] }, 'a'))
  await eventually(() => intents(host, 'resources/subscribe').length === 1)
  host.send(listen({ resourceSubscriptions: [...uris(100), 'file:///secret'] }, 'b'))
  expect((await host.answer('b')).error?.data).toMatchObject({ code: 'ERR_POLICY_DENIED' })
  expect(intents(host, 'resources/subscribe')).toHaveLength(1)
})

const tasks = () => serverSettings('tasks.mjs', { args: [fixture('tasks.mjs'), 'modern'] })
let lastId = 0
async function ask(host: HostEnd, method: string, params: object) {
  const id = ++lastId
  host.send({ jsonrpc: '2.0', id, method, params })
  return host.answer(id)
}
const call = (host: HostEnd, name: string, args: object = {}) =>
  ask(host, 'tools/call', { name, arguments: args, ...(name === 'work' && { task: { ttl: 60_000 } }) })

test('of tasks only those that the principal created can be listened to, one foreign among them is refused', async () => {
  const ids = new TaskIds()
  await using host = await attach(tasks(), { tasks: ids })
  await using same = await attach(tasks(), { tasks: ids })
  await using other = await attach(tasks())
  await call(host, 'work', { taskId: 'mine' })
  const listening = (who: HostEnd, ...taskIds: readonly string[]) =>
    ask(who, 'subscriptions/listen', { notifications: { taskIds } })
  const notFound = { code: 'ERR_TASK_NOT_FOUND' }
  expect((await listening(other, 'mine')).error?.data).toMatchObject(notFound)
  expect((await listening(host, 'mine', 'theirs')).error?.data).toMatchObject(notFound)
  // What the fixture answers to a method that it does not know: it was asked.
  expect((await listening(host, 'mine')).error?.code).toBe(-32601)
  expect((await listening(same, 'mine')).error?.code).toBe(-32601)
  expect(intents(host, 'tasks/get')).toHaveLength(1)
})

test('a server that speaks of a task to somebody else’s host is not heard', async () => {
  await using host = await attach(tasks())
  await call(host, 'work', { taskId: 'mine' })
  await call(host, 'announce', { taskId: 'theirs', status: 'completed' })
  await call(host, 'set', { taskId: 'mine', status: 'completed', notify: true })
  const heard = host.lines.filter((line) => line.includes('"notifications/tasks"'))
  expect(heard).toHaveLength(1)
  expect(heard[0]).toContain('mine')
  expect(host.eventsOf('session/refused')).toMatchObject([
    { detail: { method: 'notifications/tasks', code: 'ERR_TASK_NOT_FOUND' } },
  ])
})
