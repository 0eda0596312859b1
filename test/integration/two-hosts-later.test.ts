// Two users on one server of 2026-07-28 whose sessions share a process: tasks, questions and notices of one are none for the other,
// whatever ids the server gives them.
import { readFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { askableMeta } from '../support/attach.ts'
import { configOf, endServe, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller, type RawReply } from '../support/raw-caller.ts'
import { speaker } from '../support/speaker.ts'
import { isRoot } from '../support/user.ts'

const [ann, bob] = [47_896, 47_897]
const group = 'users'
const gid = Number(/^users:[^:]*:(\d+):/m.exec(readFileSync('/etc/group', 'utf8'))?.[1])

const _meta = { ...speaker, ...askableMeta }

let at: Place
let life: Awaited<ReturnType<typeof serve>>
beforeAll(async () => {
  const elicitation = { enabled: true, timeout_ms: 60_000, queue: 1 }
  const shared = fixture('shares', { instance: 'shared', elicitation })
  at = await place(configOf({ shared }, isRoot ? { host_group: group } : {}))
  await chmod(at.folder, 0o711)
  life = await serve(at)
})
afterAll(async () => {
  await endServe(life)
  await at[Symbol.asyncDispose]()
})

const sessionOf = async (uid: number): Promise<RawCaller> => {
  const host = RawCaller.openAs(uid, [gid], join(at.runtimeDir, 'host/host.sock'))
  expect((await host.ask('session/attach', { server: 'shared' })).error).toBeUndefined()
  return host
}
const call = (host: RawCaller, name: string, args: object = {}, more: object = {}): Promise<RawReply> =>
  host.ask('tools/call', { name, arguments: args, _meta, ...more })
/** What comes of a call that the server answers with this result. */
const answered = async (host: RawCaller, result: object, more: object = {}): Promise<RawReply> => {
  const key = `k${Math.random()}`.replace('.', '')
  const waiting = call(host, 'hold', { key }, more)
  await eventually(async () => {
    const line = JSON.stringify({ jsonrpc: '2.0', id: 'IT', result }).replace('"IT"', `ID:${key}`)
    const heard = JSON.stringify(await call(host, 'heard'))
    return heard.includes(key) && (await call(host, 'say', { lines: [line] }))
  })
  return waiting
}
const heardBy = async (host: RawCaller): Promise<string> => JSON.stringify(await call(host, 'heard'))

const subscription = 'io.modelcontextprotocol/subscriptionId'
/** The id that the process of that host was given for the last subscription. */
const listenIdIn = async (host: RawCaller): Promise<unknown> => {
  const { content } = (await call(host, 'heard')).result as { content: readonly { text: string }[] }
  const lines = (JSON.parse(content[0]?.text ?? '[]') as readonly string[]).map(
    (line) => JSON.parse(line) as { id?: unknown; method?: string },
  )
  return lines.findLast(({ method }) => method === 'subscriptions/listen')?.id
}

const task = { resultType: 'task', taskId: 'same', status: 'working', ttlMs: null }

test.runIf(isRoot)('a task of one is none for the other, nor are notices of it', async () => {
  using mine = await sessionOf(ann)
  using theirs = await sessionOf(bob)
  expect((await answered(mine, task)).result).toMatchObject({ taskId: 'same' })
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
    expect((await theirs.ask(method, { taskId: 'same', _meta })).error?.data.code, method).toBe(
      'ERR_TASK_NOT_FOUND',
    )
  expect(await heardBy(theirs)).not.toContain('tasks/')
  // One of the same id: what is asked of it goes to the process of whoever asks.
  await answered(theirs, task)
  expect((await theirs.ask('tasks/cancel', { taskId: 'same', _meta })).error?.message).toBe(
    'Method not found',
  )
  expect(await heardBy(theirs)).toContain('tasks/cancel')
  expect(await heardBy(mine)).not.toContain('tasks/')
  for (const host of [mine, theirs])
    void host
      .ask('subscriptions/listen', { notifications: { taskIds: ['same'] }, _meta })
      .catch(() => undefined)
  await eventually(
    async () => (await heardBy(mine)).includes('taskIds') && (await heardBy(theirs)).includes('taskIds'),
  )
  const subscriptionId = await listenIdIn(theirs)
  const notice = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/tasks',
    params: { ...task, status: 'completed', _meta: { [subscription]: subscriptionId } },
  })
  await call(theirs, 'say', { lines: [notice] })
  await eventually(() => theirs.lines.some((line) => line.includes('notifications/tasks')))
  await heardBy(mine)
  expect(mine.lines.filter((line) => line.includes('notifications/tasks'))).toEqual([])
})

test.runIf(isRoot)('a subscription of one hears nothing of what is told to the other', async () => {
  using mine = await sessionOf(ann)
  using theirs = await sessionOf(bob)
  const told = (host: RawCaller): number =>
    host.lines.filter((line) => line.includes('notifications/resources/updated')).length
  const notifications = { resourceSubscriptions: ['file:///a'] }
  for (const host of [mine, theirs])
    void host.ask('subscriptions/listen', { notifications, _meta }).catch(() => undefined)
  await eventually(() =>
    [mine, theirs].every(({ lines }) => lines.some((line) => line.includes('acknowledged'))),
  )
  await call(theirs, 'update', { uri: 'file:///a' })
  await eventually(() => told(theirs) === 1)
  await heardBy(mine)
  expect(told(mine)).toBe(0)
  await call(mine, 'update', { uri: 'file:///a' })
  await eventually(() => told(mine) === 1)
  expect(told(theirs)).toBe(1)
})

test.runIf(isRoot)(
  'a question to one takes no place of the other’s, and the other can’t answer it',
  async () => {
    using mine = await sessionOf(ann)
    using theirs = await sessionOf(bob)
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
    const who = { method: 'elicitation/create', params: { mode: 'form', message: 'm', requestedSchema } }
    const asks = { resultType: 'input_required', inputRequests: { who }, requestState: 'same' }
    const isAsked = { result: { resultType: 'input_required', requestState: 'same' } }
    const inputResponses = { who: { action: 'accept', content: { name: 'Bartholomew' } } }
    const done = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }
    expect(await answered(mine, asks)).toMatchObject(isAsked)
    // The queue has one place: his own is free.
    expect(await answered(theirs, asks)).toMatchObject(isAsked)
    expect(await answered(theirs, done, { requestState: 'same', inputResponses })).toMatchObject({
      result: done,
    })
    expect(await heardBy(theirs)).toContain('Bartholomew')
    expect(await heardBy(mine)).not.toContain('Bartholomew')
    // Hers still waits, and takes hers: a second one has none.
    const second = { ...asks, requestState: 'second' }
    const refused = answered(mine, second)
    await eventually(async () => (await heardBy(mine)).includes('inputResponses'))
    expect(await heardBy(mine)).toContain('decline')
    refused.catch(() => undefined)
  },
)
