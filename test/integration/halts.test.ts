// What halts a server, holds its calls and lets go of them again: on record, through kills, and by names that are there.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, daemon, fixture, type TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { bodiesOf } from '../support/witness.ts'

let at: TestDaemon
beforeAll(async () => {
  const restart = { schedule_s: [0.05], jitter: 0, start_attempts: 50, storm: 3 }
  at = await daemon(
    configOf({
      stormy: fixture('crash-at-start', { restart }),
      calm: fixture('echo'),
    }),
  )
})
afterAll(() => at[Symbol.asyncDispose]())

/** Kills the daemon and starts another. */
async function again(): Promise<Client> {
  const file = join(at.runtimeDir, 'host/daemon.json')
  const { pid } = JSON.parse(readFileSync(file, 'utf8')) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await eventually(() => !existsSync(`/proc/${pid}`))
  at.start(['serve'])
  return eventually(async () => {
    const isOther = (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid !== pid
    return isOther && at.connect('operator').catch(() => null)
  })
}

const start = (client: Client) => client.call('servers/start', { server: 'stormy' })
const halted = {
  code: 'ERR_SERVER_UNAVAILABLE',
  message: expect.stringContaining('sallyport release stormy'),
}

const shows = async (words: RegExp): Promise<void> => {
  for (const verb of [['ps'], ['show', 'stormy']]) expect((await at.run(verb)).stdout).toMatch(words)
}

test('a storm of ends halts its server on record: also for the next daemon, until it is released, also for the one after', async () => {
  await start(at.client).catch(() => undefined)
  await eventually(() => bodiesOf(at.stateDir, 'server.quarantined').length > 0)
  expect(bodiesOf(at.stateDir, 'server.quarantined')).toMatchObject([
    {
      server: 'stormy',
      failure: 'storm',
      reason: expect.stringContaining('it was lost 3 times within 60 s'),
    },
  ])
  await expect(start(at.client)).rejects.toMatchObject(halted)
  await shows(
    /it is quarantined: it was lost 3 times .*; an operator lets it run again with sallyport release stormy/,
  )
  await using second = await again()
  await expect(start(second)).rejects.toMatchObject(halted)
  expect(await second.call('servers/get', { server: 'stormy' })).toMatchObject({
    state: 'failed',
    instances: [],
  })
  await shows(
    /it is quarantined: it was lost 3 times .*; an operator lets it run again with sallyport release stormy/,
  )
  expect(await second.call('trust/list', { server: 'stormy' })).toEqual({ trust: [] })
  const released = await at.run(['release', 'stormy', '--reason', 'mended'])
  expect(released).toMatchObject({ status: 0, stderr: expect.stringContaining('ended the quarantine') })
  expect(bodiesOf(at.stateDir, 'server.released')).toMatchObject([{ server: 'stormy', reason: 'mended' }])
  await using third = await again()
  // It is started, and ends as it always did.
  await expect(start(third)).rejects.toMatchObject({ message: expect.not.stringContaining('quarantined') })
})

test.each([
  [['hold', 'clam'], 8, /no server is called "clam"; did you mean calm\?; see sallyport ps/],
  [['hold', 'nobody'], 8, /no server is called "nobody"; see sallyport ps/],
  [['hold', 'clam', '--stop'], 8, /did you mean calm\?/],
  [['hold', 'calm', 'ecko'], 8, /nothing is known of a tool ecko of calm; did you mean echo\?/],
  [
    ['hold', 'calm', 'resources/reed'],
    8,
    /the method resources\/reed is not governed; did you mean resources\/read\?/,
  ],
  [['hold', 'calm', 'tools/call'], 8, /the method tools\/call is not governed/],
  [['permits', 'revoke', '--server', 'clam'], 8, /no server is called "clam"; did you mean calm\?/],
  [['trust', 'list', 'clam'], 8, /no server is called "clam"; did you mean calm\?/],
  [['release', 'lunhc'], 8, /nothing is held or quarantined under "lunhc"; did you mean lunch\?/],
])('%j names what is there', async (args, status, words) => {
  await using client = await eventually(() => at.connect('operator').catch(() => null))
  await client.call('tools/call', { server: 'calm', tool: 'echo', arguments: {} })
  await client.call('servers/hold', { server: 'calm', name: 'lunch' })
  const before = (await client.call('servers/holds', {})).holds
  const ran = await at.run(args)
  expect(ran.stderr).toMatch(words)
  expect(ran.status).toBe(status)
  expect((await client.call('servers/holds', {})).holds).toEqual(before)
  await client.call('servers/release', { name: 'lunch' })
})

test('what rules name beside tools can be held, and a tool of a server of which nothing is known yet', async () => {
  await using client = await at.connect('operator')
  expect((await at.run(['hold', 'calm', 'resources/read'])).status).toBe(0)
  expect((await at.run(['hold', 'stormy', 'anything'])).status).toBe(0)
  expect((await at.run(['release', 'calm/resources/read'])).status).toBe(0)
  expect((await at.run(['release', 'stormy/anything'])).status).toBe(0)
  expect((await client.call('servers/holds', {})).holds).toEqual([])
})

test('a hold is placed in the stead of no other, whoever names it', async () => {
  await using client = await at.connect('operator')
  const hold = (...args: string[]) => at.run(['hold', ...args])
  await client.call('servers/hold', { server: 'calm', name: 'incident' })
  const another = {
    status: 7,
    stderr: expect.stringContaining('another hold is called incident (server calm'),
  }
  expect(await hold('stormy', '--name', 'incident')).toMatchObject(another)
  expect(await hold('calm', '--name', 'incident')).toMatchObject({ status: 0 }) // the very same
  expect(await hold('--lineage', 'a/b')).toMatchObject({ status: 0 })
  expect(await hold('--lineage', 'a b')).toMatchObject({
    status: 7,
    stderr: expect.stringContaining('ERR_HOLD_EXISTS'),
  })
  expect(await hold('stormy', 'anything')).toMatchObject({ status: 0 })
  expect(await hold('stormy', 'anything', '--lineage', 'a')).toMatchObject({ status: 0 })
  const names = ['incident', 'lineage/a-b', 'stormy/anything', 'stormy/anything/a']
  expect((await client.call('servers/holds', {})).holds.map(({ name }) => name)).toEqual(names)
  // Two at once are one, and the other is told.
  const both = ['calm', 'stormy'].map((server) => client.call('servers/hold', { server, name: 'both' }))
  const placed = await Promise.allSettled(both)
  expect(placed.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  for (const name of [...names, 'both']) await client.call('servers/release', { name })
})
