import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { RawJson } from '../../src/lib/raw-json.ts'
import { SallyportError } from '../../src/errors.ts'
import type { Launch, ToolCall } from '../../src/supervisor/ports.ts'
import { attach } from '../support/attach.ts'
import { handled } from '../support/handled.ts'
import { fixture, plainLaunch } from '../support/plain-launch.ts'
import type { CallId } from '../../src/lib/ids.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller, superviseAll, type Supervised } from '../support/supervisor.ts'
import { patienceMs } from '../support/patience.ts'

/** As long as each wait may take, counted from where it begins */
const waiting = {
  get signal() {
    return AbortSignal.timeout(patienceMs)
  },
}

const callOf = (tool: string, args = '{}', more: Partial<ToolCall> = {}): ToolCall => ({
  server: 'fixture',
  tool,
  arguments: new RawJson(args),
  timeoutMs: null,
  generation: null,
  lineage: null,
  ...more,
})

const stateOf = ({ supervisor }: Supervised) => supervisor.list(caller())[0]?.instances[0]?.state

test('a control call starts a lazy server and gives its result byte for byte', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const result = await all.supervisor.call(caller(), callOf('echo', '{"a":12345678901234567890}'), waiting)
  expect(result).toMatchObject({
    type: 'output',
    error_text: null,
    metadata: { identity: 'fixture/echo@1.0.0#1' },
  })
  expect(result.data).toBeInstanceOf(RawJson)
  expect(all.supervisor.list(caller())[0]).toMatchObject({
    state: 'connected',
    instances: [{ state: 'ready' }],
  })
})

test('a tool that says it failed, a JSON-RPC error and an unknown tool are told apart', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const failed = await all.supervisor.call(caller(), callOf('fail'), waiting)
  expect(failed).toMatchObject({ type: 'error', error_text: 'as asked' })
  const error = await all.supervisor.call(caller(), callOf('error'), waiting)
  expect(error).toMatchObject({ type: 'error', error_text: 'as asked (-32050)' })
  expect((error.data as RawJson).raw).toBe('{"code":-32050,"message":"as asked","data":{"detail":1}}')
  await expect(all.supervisor.call(caller(), callOf('none'), waiting)).rejects.toMatchObject({
    code: 'ERR_TOOL_NOT_FOUND',
  })
})

test('a call that policy denies starts nothing', async () => {
  const rules = [{ permission: 'mcp:*:*', action: 'deny', where: {}, origin: 'rules[0]' }] as const
  await using all = await superviseAll([serverSettings('echo.mjs')], { rules })
  await expect(all.supervisor.call(caller(), callOf('echo'), waiting)).rejects.toMatchObject({
    code: 'ERR_POLICY_DENIED',
  })
  expect(all.launches()).toBe(0)
})

test('arguments with the same key twice are refused', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  await expect(
    all.supervisor.call(caller(), callOf('echo', '{"a":1,"\\u0061":2}'), waiting),
  ).rejects.toMatchObject({
    code: 'ERR_MESSAGE_AMBIGUOUS',
  })
})

test('tools are listed for connected servers only, and listing starts nothing', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const { generation: first, ...none } = await all.supervisor.tools(caller(), null, waiting)
  expect(none).toEqual({ tools: [], collisions: [] })
  await all.supervisor.start(caller(), 'fixture', waiting)
  const { tools, generation } = await all.supervisor.tools(caller(), 'fixture', waiting)
  expect(tools.map(({ name }) => name)).toEqual(['fixture_echo', 'fixture_fail', 'fixture_error'])
  expect(generation).toBe(first + 1)
})

test('a server that never gets ready holds up no list but its own', async () => {
  const timeouts = { initializeMs: 600_000, callMs: 5000, idleMs: 0 }
  const silent = serverSettings('never-initialize.mjs', { name: 'silent', timeouts })
  await using all = await superviseAll([silent, serverSettings('echo.mjs')])
  await all.supervisor.start(caller(), 'fixture', waiting)
  const patient = { signal: new AbortController().signal }
  const starting = all.supervisor.start(caller(), 'silent', patient).catch(() => null)
  await eventually(() => stateOf(all) === 'starting')
  const { tools } = await all.supervisor.tools(caller(), null, patient)
  expect(tools.map(({ server }) => server)).toEqual(['fixture', 'fixture', 'fixture'])
  expect(stateOf(all)).toBe('starting')
  const own = all.supervisor.tools(caller(), 'silent', patient)
  await all.supervisor.stop(caller(), 'silent')
  expect((await own).tools).toEqual([])
  await starting
})

test('principals have instances of their own and see no others', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  await all.supervisor.start(caller(1), 'fixture', waiting)
  expect(all.supervisor.list(caller(2))[0]?.instances).toEqual([])
  await all.supervisor.start(caller(2), 'fixture', waiting)
  expect(all.launches()).toBe(2)
  expect(await all.supervisor.stop(caller(2), 'fixture')).toHaveLength(1)
  expect(all.supervisor.list(caller(1))[0]?.instances).toMatchObject([{ state: 'ready' }])
  expect(all.supervisor.list(caller(0, 'operator'))[0]?.instances).toHaveLength(2)
})

test('a server that asks for what cannot be enforced is refused by name', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs', { unenforceable: ['egress'] })])
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject({
    code: 'ERR_SANDBOX_UNENFORCEABLE',
    message: expect.stringContaining('egress') as string,
  })
  expect(all.supervisor.list(caller())[0]).toMatchObject({ state: 'failed' })
})

test('listing tools makes no instance of servers that never ran, which would be shown as stopped', async () => {
  const off = serverSettings('echo.mjs', { name: 'off', enabled: false, disabledReason: 'so it is' })
  await using all = await superviseAll([off, serverSettings('echo.mjs', { name: 'halted' })])
  await all.supervisor.quarantine('halted', 'a look')
  await all.supervisor.tools(caller(), null, waiting)
  await all.supervisor.tools(caller(), 'off', waiting)
  const shown = all.supervisor.list(caller()).map(({ state, instances }) => ({ state, instances }))
  expect(shown).toEqual([
    { state: 'disabled', instances: [] },
    { state: 'failed', instances: [] },
  ])
})

test('a disabled server is neither started nor attached', async () => {
  const off = serverSettings('echo.mjs', { enabled: false, disabledReason: 'its tags do not name mode ci' })
  await using all = await superviseAll([off])
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject({
    code: 'ERR_SERVER_DISABLED',
  })
  await expect(all.supervisor.attach(caller(), { server: 'fixture' })).rejects.toMatchObject({
    code: 'ERR_SERVER_DISABLED',
  })
})

test('a server that crashes in a call fails that call once, and the next one at once', async () => {
  await using all = await superviseAll([serverSettings('crash-on-call.mjs')])
  const { tools } = await all.supervisor
    .start(caller(), 'fixture', waiting)
    .then(() => all.supervisor.tools(caller(), null, waiting))
  const tool = tools[0]?.tool ?? ''
  await expect(all.supervisor.call(caller(), callOf(tool), waiting)).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
    message: 'mcp server fixture is unavailable: it exited with status 3',
  })
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'backoff')
  const before = performance.now()
  await expect(all.supervisor.call(caller(), callOf(tool), waiting)).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
  })
  expect(performance.now() - before).toBeLessThan(100)
  expect(all.launches()).toBe(1)
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'ready')
  expect(all.supervisor.list(caller())[0]?.instances[0]?.restarts).toBe(1)
})

test('who calls a server that waits for its next start hears once which one it is, why, and when that start is', async () => {
  const restart = { scheduleS: [60], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  await using all = await superviseAll([serverSettings('loses-streams.mjs', { restart })])
  const message = 'mcp server fixture is unavailable: it closed its output'
  await expect(all.supervisor.call(caller(), callOf('mute'), waiting)).rejects.toMatchObject({ message })
  await eventually(() => stateOf(all) === 'backoff')
  const told = await all.supervisor.call(caller(), callOf('echo'), waiting).catch(String)
  expect(told).toMatch(
    /unavailable: it closed its output; it is tried again in (?:5\d|60) s, and at once by sallyport start fixture$/,
  )
  const view = all.supervisor.list(caller())[0]?.instances[0]
  const dueMs = Date.parse(view?.next_try_at ?? '') - Date.now()
  expect(dueMs).toBeGreaterThan(30_000)
  expect(dueMs).toBeLessThanOrEqual(60_000)
  expect(all.events.findLast(({ type }) => type === 'instance/state')?.detail).toMatchObject({
    to: 'backoff',
    next_try_at: view?.next_try_at,
  })
  await all.supervisor.start(caller(), 'fixture', waiting)
  expect(all.supervisor.list(caller())[0]?.instances[0]).toMatchObject({ state: 'ready', next_try_at: null })
})

test('a server that closes its output and lives on is ended, and started again on the schedule', async () => {
  const restart = { scheduleS: [0.05], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  await using all = await superviseAll([serverSettings('loses-streams.mjs', { restart })])
  const unavailable = {
    code: 'ERR_SERVER_UNAVAILABLE',
    message: 'mcp server fixture is unavailable: it closed its output',
  }
  const first = await all.supervisor.start(caller(), 'fixture', waiting)
  await expect(all.supervisor.call(caller(), callOf('mute'), waiting)).rejects.toMatchObject(unavailable)
  // At once, and without an intent of something that can't be sent.
  await expect(all.supervisor.call(caller(), callOf('echo'), waiting)).rejects.toMatchObject(unavailable)
  expect(all.governed.records().filter(({ type }) => type === 'call.intent')).toHaveLength(1)
  await eventually(() => all.launches() === 2 && stateOf(all) === 'ready')
  expect(() => process.kill(first.pid ?? 0, 0)).toThrow('ESRCH')
  expect(all.supervisor.list(caller())[0]?.instances).toMatchObject([{ restarts: 1 }])
  await all.supervisor.call(caller(), callOf('echo'), waiting)
})

test('what is stopped while it is being ended for its own fault does not come back', async () => {
  await using all = await superviseAll([serverSettings('closes-stdout.mjs')])
  const unavailable = { code: 'ERR_SERVER_UNAVAILABLE' }
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject(unavailable)
  expect(stateOf(all)).toBe('draining')
  await all.supervisor.stop(caller(), 'fixture')
  expect(stateOf(all)).toBe('stopped')
})

test('a server that reads no more is ended, and started again on the schedule', async () => {
  const restart = { scheduleS: [0.05], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  const output = { resultBytes: 1000, lineBytes: 100_000, stderrBytes: 1000 }
  await using all = await superviseAll([serverSettings('loses-streams.mjs', { restart, output })])
  await all.supervisor.call(caller(), callOf('deaf'), waiting)
  const long = callOf('echo', JSON.stringify({ text: 'x'.repeat(90_000) }))
  const calls = Array.from({ length: 12 }, () => all.supervisor.call(caller(), long, waiting))
  for (const one of await Promise.allSettled(calls))
    expect(one).toMatchObject({
      status: 'rejected',
      reason: { message: 'mcp server fixture is unavailable: it does not read its input' },
    })
  await eventually(() => all.launches() === 2 && stateOf(all) === 'ready')
  await all.supervisor.call(caller(), callOf('echo'), waiting)
})

test('a server that never comes up gets its attempts on the schedule, then is failed', async () => {
  const restart = { scheduleS: [0.05], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  await using all = await superviseAll([serverSettings('crash-at-start.mjs', { restart })])
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
  })
  await eventually(() => all.supervisor.list(caller())[0]?.state === 'failed')
  expect(all.launches()).toBe(3)
})

test('a sandbox that could not be built is tried again on the schedule, without anybody asking', async () => {
  const restart = { scheduleS: [0.05], jitter: 0, steadyS: 60, startAttempts: 3, storm: 10 }
  let failures = 2
  const launch: Launch = (...args) =>
    failures-- > 0
      ? Promise.reject(new SallyportError('ERR_SANDBOX_SETUP', 'its monitor was killed'))
      : plainLaunch(...args)
  await using all = await superviseAll([serverSettings('echo.mjs', { restart })], { launch })
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject({
    code: 'ERR_SANDBOX_SETUP',
  })
  await eventually(() => all.supervisor.list(caller())[0]?.state === 'connected')
  expect(all.launches()).toBe(3)
})

test('a storm of ends quarantines the server until it is released', async () => {
  const restart = { scheduleS: [0.02], jitter: 0, steadyS: 60, startAttempts: 50, storm: 4 }
  await using all = await superviseAll([serverSettings('crash-at-start.mjs', { restart })])
  await all.supervisor.start(caller(), 'fixture', waiting).catch(() => undefined)
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'quarantined')
  expect(all.launches()).toBe(4)
  await expect(all.supervisor.attach(caller(), { server: 'fixture' })).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
  })
  await all.supervisor.release('fixture', 'mended')
  expect(all.supervisor.list(caller())[0]?.instances[0]?.state).toBe('stopped')
})

test.each(['dies', 'cannot be launched'])(
  'a storm quarantines a server that was up before, and whose last end is that it %s',
  async (lastEnd) => {
    const restart = { scheduleS: [0.02], jitter: 0, steadyS: 60, startAttempts: 50, storm: 2 }
    let launches = 0
    const launch: Launch = (...args) =>
      ++launches === 2 && lastEnd === 'cannot be launched'
        ? Promise.reject(new SallyportError('ERR_SANDBOX_SETUP', 'its monitor was killed'))
        : plainLaunch(...args)
    await using all = await superviseAll([serverSettings('crash-on-call.mjs', { restart })], { launch })
    const call = (): Promise<unknown> =>
      all.supervisor.call(caller(), callOf('crash'), waiting).catch((error: unknown) => error)
    await call()
    if (lastEnd === 'dies') {
      await eventually(() => launches === 2 && stateOf(all) === 'ready')
      await call()
    }
    await eventually(() => stateOf(all) === 'quarantined')
    await all.supervisor.release('fixture', 'mended')
    expect(stateOf(all)).toBe('stopped')
    await all.supervisor.start(caller(), 'fixture', waiting)
  },
)

test('a server that never answers initialize is given up within initialize_ms', async () => {
  const timeouts = { initializeMs: 300, callMs: 1000, idleMs: 60_000 }
  await using all = await superviseAll([serverSettings('never-initialize.mjs', { timeouts })])
  await expect(all.supervisor.start(caller(), 'fixture', waiting)).rejects.toMatchObject({
    code: 'ERR_INITIALIZE_TIMEOUT',
  })
})

test('an idle server is stopped, and a call starts it again', async () => {
  const timeouts = { initializeMs: 5000, callMs: 5000, idleMs: 50 }
  await using all = await superviseAll([serverSettings('echo.mjs', { timeouts })])
  await all.supervisor.call(caller(), callOf('echo'), waiting)
  await eventually(() => all.supervisor.list(caller())[0]?.instances[0]?.state === 'stopped')
  await all.supervisor.call(caller(), callOf('echo'), waiting)
  expect(all.launches()).toBe(2)
})

test.each([0, 2_592_000_000])('an idle server with idle_ms: %i goes on', async (idleMs) => {
  const timeouts = { initializeMs: 5000, callMs: 5000, idleMs }
  await using all = await superviseAll([serverSettings('echo.mjs', { timeouts })])
  for (const _ of [1, 2]) {
    await all.supervisor.call(caller(), callOf('echo'), waiting)
    // A timer that is due at once goes off before one that is asked for after it.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(all.launches()).toBe(1)
})

test('eager servers start, a few at a time, and one that fails keeps nobody from starting', async () => {
  const eager = (name: string, script: string) => serverSettings(script, { name, start: 'eager' })
  await using all = await superviseAll(
    [
      eager('a', 'echo.mjs'),
      eager('b', 'crash-at-start.mjs'),
      eager('c', 'echo.mjs'),
      serverSettings('echo.mjs'),
    ],
    { concurrency: 1 },
  )
  await all.supervisor.startEager(caller(), ['a', 'b', 'c', 'fixture'], waiting)
  expect(all.supervisor.list(caller()).map(({ name, instances }) => [name, instances[0]?.state])).toEqual([
    ['a', 'ready'],
    ['b', 'backoff'],
    ['c', 'ready'],
    ['fixture', undefined],
  ])
})

test('of many eager servers no more are on their way up at once than startup.concurrency says', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const eager = names.map((name) => serverSettings('echo.mjs', { name, start: 'eager' }))
  await using all = await superviseAll(eager, { concurrency: 3 })
  await all.supervisor.startEager(caller(), names, waiting)
  const starting = new Set<string | null>()
  const counts = all.events.flatMap(({ type, server, detail }) => {
    if (type !== 'instance/state') return []
    if (detail['to'] === 'starting') starting.add(server)
    else starting.delete(server)
    return [starting.size]
  })
  expect(Math.max(...counts)).toBe(3)
  expect(all.launches()).toBe(names.length)
})

test('testing a server names each step, and leaves nothing', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const report = await all.supervisor.test(caller(0, 'operator'), 'fixture', waiting)
  expect(report.ok).toBe(true)
  expect(report.steps.map(({ step }) => step)).toEqual([
    'launch',
    'initialize',
    'tools/list',
    'declaration',
    'stop',
  ])
  expect(all.supervisor.list(caller(0, 'operator'))[0]?.instances).toEqual([])
})

test('a server that knows only the later era is spoken to in that', async () => {
  const modern = serverSettings('discover.mjs', { args: [fixture('discover.mjs'), 'modern'] })
  await using all = await superviseAll([modern])
  const result = await all.supervisor.call(caller(), callOf('pid'), waiting)
  expect(JSON.stringify(result.data)).toContain('io.modelcontextprotocol/protocolVersion')
})

test.each(['-32601', '-32602', '-32600'])(
  'so is one that refuses initialize by %s, as a method that it does not have',
  async (code) => {
    const modern = serverSettings('discover.mjs', { args: [fixture('discover.mjs'), 'modern', code] })
    await using all = await superviseAll([modern])
    const result = await all.supervisor.call(caller(), callOf('pid'), waiting)
    expect(JSON.stringify(result.data)).toContain('io.modelcontextprotocol/protocolVersion')
  },
)

test.each(['error', 'dies'])(
  'a server that refuses initialize, and %s at server/discover, has refused initialize',
  async (kind) => {
    const server = serverSettings('discover.mjs', { args: [fixture('discover.mjs'), kind, '-32601'] })
    await using all = await superviseAll([server])
    const call = all.supervisor.call(caller(), callOf('pid'), waiting)
    await expect(call).rejects.toMatchObject({
      message: expect.stringContaining('it refused initialize: no'),
    })
  },
)

test('one that answers each of the two questions in time, and both of them too late, is not there', async () => {
  const timeouts = { initializeMs: 1000, callMs: 10_000, idleMs: 1000 }
  const args = [fixture('discover.mjs'), 'modern', '-32601', '600']
  await using all = await superviseAll([serverSettings('discover.mjs', { args, timeouts })])
  const call = all.supervisor.call(caller(), callOf('pid'), waiting)
  await expect(call).rejects.toMatchObject({
    message: expect.stringMatching(/refused initialize|did not answer the handshake/),
  })
})

test('in the later era, too, what is digested and recorded are the bytes that the server is sent', async () => {
  const modern = serverSettings('discover.mjs', { args: [fixture('discover.mjs'), 'modern'] })
  await using all = await superviseAll([modern])
  const { data } = await all.supervisor.call(caller(), callOf('pid', '{"b":1.0}'), waiting)
  const { line } = JSON.parse((data as RawJson).raw) as { line: string }
  const intent = all.governed.records().find(({ type }) => type === 'call.intent')
  const { request, bytes_digest } = (intent?.body ?? {}) as { request: string; bytes_digest: string }
  expect(line.endsWith(`,"params":${request}}`)).toBe(true)
  expect(request).toContain('io.modelcontextprotocol/protocolVersion')
  expect(bytes_digest).toBe(hash('sha256', request))
})

test('a quarantined server says to whoever wants it that it is, why, and who can mend it', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const attachment = await all.supervisor.attach(caller(), { server: 'fixture' })
  await all.supervisor.quarantine('fixture', 'it lists more than it should')
  const message =
    'mcp server fixture is unavailable: it is quarantined: it lists more than it should; an operator lets it run again with sallyport release fixture'
  await expect(all.supervisor.attach(caller(), { server: 'fixture' })).rejects.toMatchObject({ message })
  await expect(all.supervisor.call(caller(), callOf('echo'), waiting)).rejects.toMatchObject({ message })
  const end = await all.supervisor.sessionResult(caller(), attachment.session)
  expect(`mcp server fixture is unavailable: ${end.reason}`).toBe(message)
  await all.supervisor.release('fixture', 'mended')
  await all.supervisor.call(caller(), callOf('echo'), waiting)
})

test('a server that is released while it is being stopped is released at the end of that stop, and runs again', async () => {
  await using all = await superviseAll([serverSettings('ignore-eof.mjs')])
  await all.supervisor.start(caller(), 'fixture', waiting)
  const stopped = all.supervisor.quarantine('fixture', 'a look')
  expect(await all.supervisor.release('fixture', 'looked at')).toBe(true)
  await all.supervisor.call(caller(), callOf('echo'), waiting)
  await stopped
  expect(await all.supervisor.start(caller(), 'fixture', waiting)).toMatchObject({ state: 'ready' })
})

test('a server that is quarantined anew while it is being stopped is not released by the word that came between', async () => {
  await using all = await superviseAll([serverSettings('ignore-eof.mjs')])
  await all.supervisor.start(caller(), 'fixture', waiting)
  const first = all.supervisor.quarantine('fixture', 'a look')
  const released = all.supervisor.release('fixture', 'looked at')
  const second = all.supervisor.quarantine('fixture', 'another look')
  expect(await released).toBe(false)
  await Promise.all([first, second])
  await expect(all.supervisor.call(caller(), callOf('echo'), waiting)).rejects.toThrow('it is quarantined')
})

test('a server that was removed is started by no call that came before', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const long = JSON.stringify({ long: 'x'.repeat(300_000) }) // such a call is read in turns of its own
  const called = handled(all.supervisor.call(caller(), callOf('echo', long), waiting))
  expect(await all.supervisor.remove(caller(0, 'operator'), 'fixture')).toEqual([])
  await expect(called).rejects.toMatchObject({
    code: 'ERR_SERVER_UNAVAILABLE',
    message: expect.stringContaining('operator 0 removed it') as string,
  })
  expect(all.launches()).toBe(0)
})

test('a call that was taken back before its server was asked for starts none', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const long = JSON.stringify({ long: 'x'.repeat(300_000) })
  const taken = new AbortController()
  const called = handled(all.supervisor.call(caller(), callOf('echo', long), { signal: taken.signal }))
  taken.abort(new SallyportError('ERR_CALL_CANCELLED', 'taken back'))
  await expect(called).rejects.toMatchObject({ code: 'ERR_CALL_CANCELLED' })
  expect(all.launches()).toBe(0)
})

test('a call that takes too long is cancelled at the server, and its late answer goes nowhere', async () => {
  await using all = await superviseAll([serverSettings('slow.mjs')])
  const slow = callOf('wait', '{"ms":5000}', { timeoutMs: 200 })
  await expect(all.supervisor.call(caller(), slow, waiting)).rejects.toMatchObject({
    code: 'ERR_CALL_TIMEOUT',
  })
  await eventually(() =>
    all.supervisor.logs(caller(0, 'operator'), 'fixture', 10).lines.includes('cancelled'),
  )
})

test('a call ends with its signal, and only its own principal can cancel it', async () => {
  await using all = await superviseAll([serverSettings('slow.mjs')])
  const call = handled(all.supervisor.call(caller(1), callOf('wait', '{"ms":5000}'), waiting))
  const id = await eventually(() => all.events.find(({ type }) => type === 'call/started')?.detail['call'])
  expect(all.supervisor.cancel(caller(2), id as CallId, 'not mine')).toBe(false)
  expect(all.supervisor.cancel(caller(1), id as CallId, 'enough')).toBe(true)
  await expect(call).rejects.toMatchObject({ code: 'ERR_CALL_CANCELLED' })
  expect(all.supervisor.cancel(caller(1), id as CallId, 'again')).toBe(false)
})

test('a new tool gets a new generation, and a call that saw the old one is refused', async () => {
  await using all = await superviseAll([serverSettings('list-changed.mjs', { surface: 'dynamic' })])
  await all.supervisor.start(caller(), 'fixture', waiting)
  const before = await all.supervisor.tools(caller(), null, waiting)
  await all.supervisor.call(caller(), callOf('add'), waiting)
  const after = await eventually(async () => {
    const list = await all.supervisor.tools(caller(), null, waiting)
    return list.generation > before.generation && list
  })
  const pinned = { generation: before.generation }
  await expect(all.supervisor.call(caller(), callOf('added', '{}', pinned), waiting)).rejects.toMatchObject({
    code: 'ERR_TOOL_NOT_FOUND',
  })
  await all.supervisor.call(caller(), callOf('echo', '{}', pinned), waiting)
  await all.supervisor.call(caller(), callOf('added', '{}', { generation: after.generation }), waiting)
  // As a daemon before may have given it, where the clock was set back since
  const never = { generation: after.generation + 1000 }
  await expect(all.supervisor.call(caller(), callOf('added', '{}', never), waiting)).rejects.toMatchObject({
    code: 'ERR_TOOL_NOT_FOUND',
    message: expect.stringContaining('which this daemon never gave; list the tools again'),
  })
})

test('a result over output.line_bytes is refused by name, and the next call passes', async () => {
  const output = { resultBytes: 1000, lineBytes: 100_000, stderrBytes: 1000 }
  await using all = await superviseAll([serverSettings('huge-line.mjs', { output })])
  await expect(
    all.supervisor.call(caller(), callOf('huge', '{"bytes":200000}'), waiting),
  ).rejects.toMatchObject({
    code: 'ERR_RESULT_TOO_LARGE',
  })
  await all.supervisor.call(caller(), callOf('echo'), waiting)
})

test('how a session ended is told to its own principal, and to nobody else', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')])
  const attachment = await all.supervisor.attach(caller(1), { server: 'fixture' })
  expect(await all.supervisor.sessionResult(caller(1), attachment.session)).toMatchObject({ ended: false })
  attachment.abandon()
  expect(await all.supervisor.sessionResult(caller(1), attachment.session)).toMatchObject({
    ended: true,
    status: 0,
  })
  await expect(all.supervisor.sessionResult(caller(2), attachment.session)).rejects.toMatchObject({
    code: 'ERR_INVALID_PARAMS',
  })
})

test('logs are followed line by line until the signal', async () => {
  await using all = await superviseAll([
    serverSettings('ignore-sigterm.mjs', { stop: { eofMs: 50, termMs: 50 } }),
  ])
  await all.supervisor.start(caller(), 'fixture', waiting)
  const controller = new AbortController()
  const lines: string[] = []
  const following = (async () => {
    for await (const { line } of all.supervisor.followLogs(caller(0, 'operator'), 'fixture', controller)) {
      lines.push(line)
      controller.abort()
    }
  })()
  await all.supervisor.stop(caller(), 'fixture')
  await following
  expect(lines).toEqual(['ignored SIGTERM'])
})

test('all servers stop at once, within the ladder, whatever they ignore', async () => {
  const stop = { eofMs: 200, termMs: 200 }
  const servers = Array.from({ length: 8 }, (_, i) =>
    serverSettings('ignore-sigterm.mjs', { name: `s${i}`, stop }),
  )
  const all = await superviseAll(servers)
  await Promise.all(servers.map(({ name }) => all.supervisor.start(caller(), name, waiting)))
  const pids = all.supervisor.list(caller()).map(({ instances }) => instances[0]?.pid ?? 0)
  const began = performance.now()
  await all[Symbol.asyncDispose]()
  expect(performance.now() - began).toBeLessThan(200 + 200 + 500)
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow()
})

test('a list of tools that is nested too deep to be read is said to be so, to a control call and to a session', async () => {
  const server = serverSettings('deep-list.mjs')
  await using all = await superviseAll([server])
  const reason = 'mcp server fixture gave an answer that cannot be read: it is nested deeper than 1000 levels'
  await expect(all.supervisor.call(caller(), callOf('echo'), waiting)).rejects.toMatchObject({
    message: expect.stringContaining(reason) as string,
  })
  await using host = await attach(server)
  host.send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
  await host.answer(1)
  host.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo' } })
  expect((await host.answer(2)).error?.message).toContain(reason)
  host.send({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
  expect((await host.answer(3)).error?.message).toContain(reason)
})
