// How often sessions start a server that never becomes ready: on the schedule, and no more than `start_attempts` times.
import { expect, test } from 'vitest'
import { SallyportError } from '../../../src/errors.ts'
import type { ServerSettings } from '../../../src/schema/settings.ts'
import type { Launch } from '../../../src/supervisor/ports.ts'
import { eventually } from '../../support/eventually.ts'
import { plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { type Message, type Sharing, sharing } from '../../support/sharing.ts'
import { caller } from '../../support/supervisor.ts'

const operator = caller(0, 'operator')
const waiting = { signal: new AbortController().signal }
const restart = { scheduleS: [60], jitter: 0, steadyS: 60, startAttempts: 3, storm: 50 }
const soon = { ...restart, scheduleS: [0.2] }

const failing = (script: string, more: Partial<ServerSettings> = {}): Promise<Sharing> =>
  sharing(serverSettings(script, { restart, ...more }))

/** A further session, and what its host is told of `initialize`. */
const tries = async (all: Sharing, who = caller()): Promise<Message> => {
  await using host = await all.host(who)
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
  return await host.ask(1, 'initialize', params)
}

const refused = (why: string): object => ({
  error: {
    message: expect.stringMatching(`^mcp server fixture is unavailable: .*(${why})`),
    data: { code: 'ERR_SERVER_UNAVAILABLE' },
  },
})

/** Of its output one may hear before it is known how it ended. */
const ended = 'it exited with status|the server closed its output'

test('a session that comes before its server’s next try is told when that is, and starts nothing', async () => {
  await using all = await failing('crash-at-start.mjs')
  expect(await tries(all)).toMatchObject(refused(ended))
  expect(await tries(all)).toMatchObject(refused('; a session can start it again in (59|60) s'))
  expect(all.launches()).toBe(1)
  expect(all.supervisor.get(caller(), 'fixture')).toMatchObject({
    state: 'pending',
    reason: expect.stringContaining('a session can start it again in'),
  })
})

test('after `start_attempts` tries none is made any more before an operator starts it', async () => {
  await using all = await failing('crash-at-start.mjs', { restart: soon })
  await eventually(async () => (await tries(all)).error?.message.includes('no session starts it again'))
  expect(all.launches()).toBe(3)
  expect(await tries(all)).toMatchObject(refused('before sallyport start fixture'))
  expect(all.launches()).toBe(3)
  expect(all.supervisor.get(operator, 'fixture')).toMatchObject({ state: 'failed' })
  await all.supervisor.start(operator, 'fixture', waiting).catch(() => undefined)
  const { error } = await tries(all)
  expect(error?.message).not.toContain('no session starts it again')
})

test('sessions that come at the same time are one try', async () => {
  await using all = await failing('crash-at-start.mjs')
  for (const told of await Promise.all([1, 2, 3, 4, 5].map(() => tries(all))))
    expect(told).toMatchObject(refused(ended))
  expect(all.supervisor.get(operator, 'fixture')).toMatchObject({
    state: 'pending',
    reason: expect.stringMatching(/can start it again in (59|60) s/),
  })
})

test('a server that does not answer the handshake is counted as one that ends', async () => {
  const timeouts = { ...serverSettings('echo.mjs').timeouts, initializeMs: 300 }
  await using all = await failing('never-initialize.mjs', { timeouts })
  expect(await tries(all)).toMatchObject({ error: { data: { code: 'ERR_INITIALIZE_TIMEOUT' } } })
  expect(await tries(all)).toMatchObject(refused('did not answer the handshake .* can start it again in'))
  expect(all.launches()).toBe(1)
})

test('so is one that closes its output and lives on', async () => {
  await using all = await failing('closes-stdout.mjs')
  expect(await tries(all)).toMatchObject(refused('the server closed its output'))
  expect(await tries(all)).toMatchObject(refused('closed its output; a session can start it again in'))
  expect(all.launches()).toBe(1)
})

test('one principal’s tries are not another’s', async () => {
  await using all = await failing('crash-at-start.mjs')
  await tries(all)
  expect(await tries(all, caller(1001))).toMatchObject(refused(ended))
  expect(all.launches()).toBe(2)
})

test('a start that comes through is where the count begins', async () => {
  const launch: Launch = (server, ...rest) => {
    const isGood = all.launches() % 2 === 0
    return plainLaunch(isGood ? serverSettings('echo.mjs') : server, ...rest)
  }
  await using all = await sharing(serverSettings('crash-at-start.mjs', { restart: soon }), { launch })
  for (let round = 0; round < 4; round++) {
    await eventually(async () => (await tries(all)).result !== undefined)
  }
  expect(all.launches()).toBe(8)
})

test('an engine that is away, and a launch that is refused in any case, counts for nothing', async () => {
  let code: 'ERR_ENGINE_UNREACHABLE' | 'ERR_SANDBOX_UNENFORCEABLE' = 'ERR_ENGINE_UNREACHABLE'
  const launch: Launch = () => Promise.reject(new SallyportError(code, 'not now'))
  await using all = await sharing(serverSettings('echo.mjs', { restart }), { launch })
  for (code of ['ERR_ENGINE_UNREACHABLE', 'ERR_SANDBOX_UNENFORCEABLE'] as const)
    for (let time = 0; time < 4; time++) expect(await tries(all)).toMatchObject({ error: { data: { code } } })
  expect(all.launches()).toBe(8)
})
