// A call whose own process goes before it was sent there: nothing has reached the server, and the record says so.
import { expect, test } from 'vitest'
import { explainCall } from '../../../src/daemon/methods/explain-call.ts'
import { SallyportError } from '../../../src/errors.ts'
import { type CallId, newCallId } from '../../../src/lib/ids.ts'
import type { Launch } from '../../../src/supervisor/ports.ts'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import type { Governed } from '../../support/governance.ts'
import { fixture, plainLaunch } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller, type Supervised, superviseAll } from '../../support/supervisor.ts'

const never = new AbortController().signal
const settings = serverSettings('echo.mjs', { instance: 'call', stop: { eofMs: 50, termMs: 50 } })

/** The server's first process is as it should be, and no other one ever answers its handshake. */
function muteFromTheSecond(): Launch {
  let launches = 0
  return (server, ...rest) => {
    launches += 1
    return plainLaunch(launches === 1 ? server : { ...server, args: [fixture('last-word.mjs')] }, ...rest)
  }
}

interface Said {
  readonly call: CallId
  readonly code?: string
}

/** What the journal has of the one call, once it has its end; with how that is explained. */
async function onRecord(at: Governed) {
  const found = await eventually(() => {
    const all = at.records().filter(({ type }) => type.startsWith('call.'))
    return all.length > 1 ? all : null
  })
  const bodies = found.map(({ body }) => body as Said)
  const { state, outcome, reason } = explainCall(bodies[0]?.call ?? newCallId(), found, () => '')
  return { types: found.map(({ type }) => type), code: bodies.at(-1)?.code, state, outcome, reason }
}

const refusedAs = (reason: string) => ({
  types: ['call.intent', 'call.denied'],
  code: 'ERR_SERVER_UNAVAILABLE',
  state: 'refused',
  outcome: null,
  reason: expect.stringContaining(reason),
})

const called = ({ supervisor }: Supervised, signal = never): Promise<unknown> => {
  const call = { server: 'fixture', tool: 'echo', arguments: { raw: '{"text":"x"}' } }
  return supervisor
    .call(caller(), { ...call, timeoutMs: null, generation: null, lineage: null }, { signal })
    .catch((error: unknown) => error)
}

test.each([
  [
    'stopped',
    ({ supervisor }: Supervised) => supervisor.stop(caller(0, 'operator'), 'fixture'),
    'stopped it',
  ],
  ['quarantined', ({ supervisor }: Supervised) => supervisor.quarantine('fixture', 'a try'), 'quarantined'],
  [
    'removed',
    ({ supervisor }: Supervised) => supervisor.remove(caller(0, 'operator'), 'fixture'),
    'removed it',
  ],
] as const)('a control call whose server is %s is refused', async (_what, act, reason) => {
  await using all = await superviseAll([settings], { launch: muteFromTheSecond() })
  const made = called(all)
  await eventually(() => all.launches() === 2)
  await act(all)
  expect(await made).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  expect(await onRecord(all.governed)).toEqual(refusedAs(reason))
  const told = all.events.map(({ type }) => type)
  expect([told.includes('call/denied'), told.includes('call/failed')]).toEqual([true, false])
})

test('a control call whose own process can’t be launched is refused', async () => {
  let launches = 0
  const launch: Launch = (...args) => {
    launches += 1
    if (launches === 1) return plainLaunch(...args)
    return Promise.reject(new SallyportError('ERR_SERVER_UNAVAILABLE', 'it can’t be launched'))
  }
  await using all = await superviseAll([settings], { launch })
  expect(await called(all)).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
  expect(await onRecord(all.governed)).toEqual(refusedAs('it can’t be launched'))
})

test('a call that its own caller takes back is cancelled', async () => {
  await using all = await superviseAll([settings], { launch: muteFromTheSecond() })
  const gone = new AbortController()
  const made = called(all, gone.signal)
  await eventually(() => all.launches() === 2)
  gone.abort(new SallyportError('ERR_CALL_CANCELLED', 'it was taken back'))
  expect(await made).toMatchObject({ code: 'ERR_CALL_CANCELLED' })
  expect((await onRecord(all.governed)).types).toEqual(['call.intent', 'call.outcome'])
})

const initialize = { protocolVersion: '2025-11-25', capabilities: {} }

test.each(['that is stopped', 'whose process is lost'])(
  'a call of a session %s is refused',
  async (which) => {
    await using host = await attach(settings, { launch: muteFromTheSecond() })
    host.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: initialize })
    await host.answer(0)
    host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    const params = { name: 'echo', arguments: { text: 'x' } }
    host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    await eventually(() => host.launches() === 2)
    if (which === 'that is stopped') await host.session.stop('a try')
    else process.kill(host.session.views().find(({ purpose }) => purpose === 'session')?.pid ?? 0, 'SIGKILL')
    expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
    expect(await onRecord(host.governed)).toEqual(refusedAs(which === 'that is stopped' ? 'a try' : ''))
  },
)
