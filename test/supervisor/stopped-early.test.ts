// What is stopped before its server has answered the handshake: whoever waits hears so at once, and why, and nothing becomes ready.
import { expect, test } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { RawJson } from '../../src/lib/raw-json.ts'
import type { Happening, Launch } from '../../src/supervisor/ports.ts'
import type { InstanceView } from '../../src/rpc/protocol.ts'
import type { ServerSettings } from '../../src/schema/settings.ts'
import { eventually } from '../support/eventually.ts'
import { fixture, plainLaunch } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { shares, sharing } from '../support/sharing.ts'
import { speaker } from '../support/speaker.ts'
import { caller, type Supervised, superviseAll } from '../support/supervisor.ts'

const never = new AbortController().signal
const operator = caller(0, 'operator')
const why = 'mcp server fixture is unavailable: operator 0 stopped it'

/** Far longer than a test may take: what is told before the process has ended was not told by its end. */
const stop = { eofMs: 600_000, termMs: 600_000 }
const timeouts = { initializeMs: 600_000, callMs: 600_000, idleMs: 600_000 }

const lastWord = (instance: ServerSettings['instance']): ServerSettings =>
  serverSettings('last-word.mjs', { instance, stop, timeouts })

const call = { server: 'fixture', tool: 'echo', arguments: { raw: '{"text":"x"}' } }
const called = ({ supervisor }: Supervised): Promise<unknown> =>
  supervisor
    .call(caller(), { ...call, timeoutMs: null, generation: null, lineage: null }, { signal: never })
    .catch((error: unknown) => error)

/** The instance that was launched last, once it has a process that was asked something. */
const running = ({ supervisor }: Supervised, purpose: InstanceView['purpose']): Promise<InstanceView> =>
  eventually(() =>
    supervisor
      .get(operator, 'fixture')
      .instances.find((one) => one.purpose === purpose && one.state === 'starting' && one.pid !== null),
  )

/** Stops the server; resolves, when everybody was told, with how its instance was then, and ends it. */
async function stopped<T>(
  all: Supervised,
  { id, pid }: InstanceView,
  told: () => Promise<T>,
): Promise<{ readonly was: string | undefined; readonly heard: T }> {
  const gone = all.supervisor.stop(operator, 'fixture')
  try {
    const heard = await told()
    const { instances } = all.supervisor.get(operator, 'fixture')
    return { was: instances.find((one) => one.id === id)?.state, heard }
  } finally {
    process.kill(pid ?? 0, 'SIGKILL')
    await gone
  }
}

const becameReady = ({ events }: { readonly events: readonly Happening[] }): readonly Happening[] =>
  events.filter(({ type, detail }) => type === 'instance/state' && detail['to'] === 'ready')

test.each(['session', 'shared'] as const)(
  'a control call hears it while the process lives on, and what that says yet counts for nothing: %s',
  async (instance) => {
    await using all = await superviseAll([lastWord(instance)])
    const made = called(all)
    const one = await running(all, instance === 'shared' ? 'shared' : 'control')
    const { was, heard } = await stopped(all, one, () => made)
    expect(was).toBe('draining')
    expect(heard).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
    expect(becameReady(all)).toEqual([])
  },
)

test('a call hears it whose own process has not answered, and nothing is built for the next one', async () => {
  const others: Launch = (server, ...rest) =>
    plainLaunch(all.launches() === 1 ? server : { ...server, args: [fixture('last-word.mjs')] }, ...rest)
  const settings = serverSettings('echo.mjs', { instance: 'call', stop, timeouts })
  await using all = await superviseAll([settings], { launch: others })
  const made = called(all)
  const one = await running(all, 'call')
  const { was, heard } = await stopped(all, one, () => made)
  expect(was).toBe('draining')
  expect(heard).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
  expect(becameReady(all)).toHaveLength(1)
})

test('a call that is in flight in a process of its own hears it, too, and not how that process ended', async () => {
  const settings = serverSettings('slow.mjs', { instance: 'call', timeouts })
  await using all = await superviseAll([settings])
  const wait = { server: 'fixture', tool: 'wait', arguments: { raw: '{"ms":600000}' } }
  const made = all.supervisor
    .call(caller(), { ...wait, timeoutMs: null, generation: null, lineage: null }, { signal: never })
    .catch((error: unknown) => error)
  await eventually(() => becameReady(all).some(({ detail }) => detail['purpose'] === 'call'))
  await all.supervisor.stop(operator, 'fixture')
  expect(await made).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
})

test('a call hears it whose server is being launched, and the instance says no more than why', async () => {
  const launch: Launch = (_server, _instance, { signal, registered }) => {
    registered()
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(SallyportError.from(signal.reason)), { once: true })
    })
  }
  await using all = await superviseAll([lastWord('session')], { launch })
  const made = called(all)
  await eventually(() => all.launches() === 1)
  await all.supervisor.stop(operator, 'fixture')
  expect(await made).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
  const { instances } = all.supervisor.get(operator, 'fixture')
  expect(instances).toMatchObject([{ state: 'stopped', reason: 'operator 0 stopped it' }])
})

const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a', version: '1' },
}

test.each(['session', 'shared'] as const)(
  'a host hears it for each of its requests, those that were not sent yet too: %s',
  async (instance) => {
    await using all = await sharing(lastWord(instance))
    const host = await all.host()
    if (instance === 'session') host.send({ id: 0, method: 'initialize', params: initialize })
    host.begin(1, 'echo', { text: 'x' })
    host.send({ id: 2, method: 'tools/list', params: { _meta: speaker } })
    const asked = instance === 'session' ? [0, 1, 2] : [1, 2]
    const one = await running(all, instance)
    const answers = async () => {
      for (const id of asked) await host.answer(id)
      return host.messages
    }
    const { was, heard } = await stopped(all, one, answers)
    expect(was).toBe('draining')
    expect(heard).toHaveLength(asked.length)
    expect(heard.map(({ error }) => error?.message)).toEqual(asked.map(() => why))
    await host.closed
    expect(becameReady(all)).toEqual([])
    const denied = all.governed.records().filter(({ type }) => type === 'call.denied')
    expect(denied).toMatchObject([{ body: { code: 'ERR_SERVER_UNAVAILABLE' } }])
  },
)

/** A server that goes on to the end of what it was asked, and a control call that it has, which takes so long; ends by `ladder`. */
async function asked(ms: number, ladder: ServerSettings['stop'] = stop) {
  const args = [fixture('slow.mjs'), 'to-the-end']
  const all = await superviseAll([serverSettings('', { args, stop: ladder, timeouts })])
  const waits = { ...call, tool: 'wait', arguments: new RawJson(JSON.stringify({ ms })) }
  const rest = { timeoutMs: null, generation: null, lineage: null }
  const made = all.supervisor.call(caller(), { ...waits, ...rest }, { signal: never })
  made.catch(() => undefined)
  const bodies = (type: string): readonly unknown[] =>
    all.governed
      .records()
      .filter((record) => record.type === type)
      .map(({ body }) => body)
  await eventually(() => bodies('call.intent').length > 0)
  return { all, made, outcomes: () => bodies('call.outcome') }
}

test('a control call that its server has is answered while that is stopped, and no other is sent', async () => {
  const { all, made, outcomes } = await asked(1000)
  await using _ = all
  const gone = all.supervisor.stop(operator, 'fixture')
  await expect(called(all)).resolves.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  expect(JSON.stringify(await made)).toContain('waited')
  await gone
  await eventually(() => outcomes().length > 0)
  expect(outcomes()).toMatchObject([{ subject: 'wait', outcome: 'result' }])
})

test('one that it does not answer in the time that it has to end is lost, and its caller hears why', async () => {
  const { all, made, outcomes } = await asked(600_000, { eofMs: 300, termMs: 300 })
  await using _ = all
  await all.supervisor.stop(operator, 'fixture')
  await expect(made).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
  await eventually(() => outcomes().length > 0)
  expect(outcomes()).toMatchObject([{ subject: 'wait', outcome: 'lost' }])
})

test('one whose server is quarantined is lost at once, whatever that says yet', async () => {
  const { all, made } = await asked(1000)
  await using _ = all
  const gone = all.supervisor.quarantine('fixture', 'it broke a rule')
  await expect(made).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
    message: expect.stringContaining('it broke a rule'),
  })
  await gone
})

test('sessions that share a process are answered, too, what it has of them, and are sent nothing more', async () => {
  const args = [fixture('shares.mjs'), 'finishes']
  await using all = await sharing(shares({ args, stop, timeouts }))
  const [one, other] = [await all.host(), await all.host()]
  one.begin(1, 'hold', { key: 'a' })
  other.begin(1, 'hold', { key: 'b' })
  await eventually(() => all.governed.records().filter(({ type }) => type === 'call.intent').length === 2)
  const gone = all.supervisor.stop(operator, 'fixture')
  for (const host of [one, other]) expect(JSON.stringify(await host.answer(1))).toContain('finished')
  await gone
  const outcomes = all.governed.records().filter(({ type }) => type === 'call.outcome')
  expect(outcomes).toMatchObject([{ body: { outcome: 'result' } }, { body: { outcome: 'result' } }])
})

test('a call that is stopped between its look at the server and its decision hears of the stop, not that nothing was accepted', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs', { timeouts })])
  expect(await called(all)).toMatchObject({ type: 'output' })
  const made = called(all)
  const gone = all.supervisor.stop(operator, 'fixture')
  expect(await made).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE', message: why })
  await gone
})
