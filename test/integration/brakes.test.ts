// What an operator takes away while the journal can't be written: it holds at once, and is on record once that can be.
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, endServe, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { bodiesOf } from '../support/witness.ts'

const rules = [
  { permission: 'mcp:*:fail', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

let at: Place
let life: Awaited<ReturnType<typeof serve>>
let operator: Client
beforeAll(async () => {
  at = await place(
    configOf(
      { held: fixture('echo'), lasting: fixture('echo'), reset: fixture('echo') },
      { rules, trust: { provisional_after: 1, trusted_after: 2 } },
    ),
  )
  life = await serve(at)
  operator = life.client
})
afterAll(async () => {
  await endServe(life)
  await at[Symbol.asyncDispose]()
})

const call = (server: string, tool = 'echo') => operator.call('tools/call', { server, tool, arguments: {} })
const journal = (): string => join(at.stateDir, 'journal')
const breakJournal = (): void => renameSync(journal(), `${journal()}.away`)
const mendJournal = (): void => renameSync(`${journal()}.away`, journal())
const owed = {
  code: 'ERR_JOURNAL',
  message: expect.stringMatching(
    /^it has effect all the same, and is recorded as soon as that can be: /,
  ) as string,
}
const held = { code: 'ERR_PERMIT_REFUSED', message: expect.stringContaining('lunch') as string }

test('a hold holds, and its release does not let go before that is on record', async () => {
  await call('held')
  breakJournal()
  await expect(operator.call('servers/hold', { server: 'held', name: 'lunch' })).rejects.toMatchObject(owed)
  expect(await operator.call('servers/holds', {})).toMatchObject({
    holds: [{ name: 'lunch', server: 'held' }],
  })
  await expect(operator.call('servers/release', { name: 'lunch' })).rejects.toMatchObject({
    code: 'ERR_JOURNAL',
  })
  mendJournal()
  await expect(call('held')).rejects.toMatchObject(held)
  await eventually(() => bodiesOf(at.stateDir, 'hold.placed').length > 0)
  expect(bodiesOf(at.stateDir, 'hold.placed')).toMatchObject([
    { name: 'lunch', by: expect.any(String) as string },
  ])
  expect(await operator.call('servers/release', { name: 'lunch' })).toEqual({ released: ['hold'] })
  await call('held')
})

test('what a tool had earned is gone, with what waits for a yes to it, and what is held against it stays until that is on record', async () => {
  for (const _ of ['provisional', 'trusted']) await call('reset')
  const trust = async () => {
    const { trust: all } = await operator.call('trust/list', { server: 'reset' })
    return all.find(({ tool }) => tool === 'echo')
  }
  await eventually(async () => (await trust())?.tier === 'trusted')
  await using watcher = await at.connect('operator')
  await watcher.call('approvals/subscribe', {})
  const asked = call('reset', 'fail').catch((error: unknown) => error)
  await eventually(async () => (await operator.call('approvals/list', {})).pending.length > 0)
  breakJournal()
  await expect(operator.call('trust/reset', { server: 'reset' })).rejects.toMatchObject(owed)
  expect(await trust()).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1 })
  expect((await operator.call('approvals/list', {})).pending).toEqual([])
  expect(await asked).toMatchObject({ code: 'ERR_JOURNAL' })
  mendJournal()
  await eventually(() => bodiesOf(at.stateDir, 'trust.reset').length > 0)
  expect(bodiesOf(at.stateDir, 'trust.reset').map(({ tool }) => tool)).toEqual(['echo', 'fail', 'error'])
  expect(await trust()).toMatchObject({ tier: 'untrusted', evidence: 0, epoch: 1 })
})

test('a hold outlives a daemon that is killed before it was on record', async () => {
  await call('lasting')
  breakJournal()
  await expect(operator.call('servers/hold', { server: 'lasting', name: 'lunch' })).rejects.toMatchObject(
    owed,
  )
  life.process.kill('SIGKILL')
  await eventually(() => life.process.signalCode !== null)
  await operator[Symbol.asyncDispose]()
  mendJournal()
  life = await serve(at)
  operator = life.client
  await expect(call('lasting')).rejects.toMatchObject(held)
  expect(bodiesOf(at.stateDir, 'hold.placed').at(-1)).toMatchObject({ name: 'lunch', owed: true })
})
