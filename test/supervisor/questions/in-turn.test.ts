// A server that gives one `requestState` to all that it asks: an answer in time is none to a question whose time was over.
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { askableMeta, attach, type HostEnd } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

const timeoutMs = 2400

const asking = () =>
  attach(
    serverSettings('asks-person.mjs', {
      args: [fixture('asks-person.mjs'), 'modern'],
      elicitation: { enabled: true, timeoutMs, queue: 16 },
    }),
  )

let lastId = 0
async function call(host: HostEnd, field: string, more: object = {}) {
  const id = ++lastId
  const params = { name: 'ask', arguments: { fields: [field] }, _meta: askableMeta, ...more }
  host.send({ jsonrpc: '2.0', id, method: 'tools/call', params })
  return (await host.answer(id)).result as unknown as {
    requestState: string
    structuredContent?: { action: string }
  }
}

/** Asks about one, then about the other, until the first has no time left and the second has half of its own. */
async function oneLate(host: HostEnd, first: string, second: string) {
  await call(host, first)
  await delay(timeoutMs / 2)
  const { requestState } = await call(host, second)
  await eventually(() => host.eventsOf('session/declined').length === 1)
  const inputResponses = { who: { action: 'accept', content: { name: 'Ann' } } }
  return async (field: string) =>
    (await call(host, field, { inputResponses, requestState })).structuredContent?.action
}

test('of two calls each has its own answer, whichever comes first', async () => {
  for (const isLateFirst of [true, false]) {
    await using host = await asking()
    const answer = await oneLate(host, 'first', 'second')
    if (isLateFirst) expect(await answer('first')).toBe('decline')
    expect(await answer('second')).toBe('accept')
    if (!isLateFirst) expect(await answer('first')).toBe('decline')
  }
})

test('of two calls that are the same the one that is in time counts, though the other’s answer comes before it', async () => {
  await using host = await asking()
  const answer = await oneLate(host, 'same', 'same')
  await answer('same') // nobody can tell whose it is
  expect(await answer('same')).toBe('accept')
  await delay(timeoutMs / 2)
  await eventually(async () => (await answer('same')) === 'decline')
  expect(host.eventsOf('session/declined').map(({ detail }) => detail['reason'])).toEqual([
    `no answer within elicitation.timeout_ms (${timeoutMs})`,
    `the answer came after elicitation.timeout_ms (${timeoutMs})`,
  ])
})

test('a host that says its request otherwise the second time is told apart by the state alone', async () => {
  await using host = await asking()
  const { requestState } = await call(host, 'one')
  const inputResponses = { who: { action: 'accept', content: { name: 'Ann' } } }
  const other = () => call(host, 'other', { inputResponses, requestState })
  expect(await other()).toMatchObject({ structuredContent: { action: 'accept' } })
  await call(host, 'one')
  await eventually(() => host.eventsOf('session/declined').length === 1)
  expect(await other()).toMatchObject({ structuredContent: { action: 'decline' } })
})
