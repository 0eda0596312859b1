// Subscriptions that the server ends: each is over, whichever way it says so, and takes no room of the host's any more.
import { expect, test } from 'vitest'
import { attach } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import type { Governed } from '../support/governance.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { sharing } from '../support/sharing.ts'
import { speaker } from '../support/speaker.ts'
import { mostShared } from '../../src/supervisor/shared/refusal.ts'

const ways = [
  ['refuses', 'error'],
  ['completes', 'result'],
  ['cancels', 'cancelled'],
  ['cancels, with a mark of it,', 'cancelled'],
] as const
const ending = (way: string, more: object = {}) =>
  serverSettings('', { args: [fixture('unsubscribing.mjs'), way], ...more })

const listening = (uri: string) => ({
  method: 'subscriptions/listen',
  params: { notifications: { resourceSubscriptions: [uri] }, _meta: speaker },
})

const outcomes = (all: Governed): readonly unknown[] =>
  all
    .records()
    .filter(({ type }) => type === 'call.outcome')
    .map(({ body }) => (body as { outcome: unknown }).outcome)

test.each(ways)('of a session whose server %s them: on record as %s', async (way, outcome) => {
  await using host = await attach(ending(way), { era: 'modern' })
  host.send({ jsonrpc: '2.0', id: 'l', ...listening('file:///a') })
  await eventually(() => outcomes(host.governed).length === 1)
  expect(outcomes(host.governed)).toEqual([outcome])
})

test.each(ways)('of a process that sessions share, and that %s them', async (way, outcome) => {
  await using all = await sharing(ending(way, { instance: 'shared' }))
  const host = await all.host()
  const step = mostShared / 2
  for (let count = step; count <= 3 * step; count += step) {
    for (let n = count - step; n < count; n += 1) host.send({ id: `l${n}`, ...listening(`file:///${n}`) })
    await eventually(() => outcomes(all.governed).length === count)
  }
  expect(new Set(outcomes(all.governed))).toEqual(new Set([outcome]))
  expect(host.messages.filter(({ error }) => error?.data !== undefined)).toEqual([])
})
