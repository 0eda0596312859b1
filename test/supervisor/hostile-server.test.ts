// What a server may do to a session, and how little it gets out of it.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 'i',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25' },
}

async function ready(script: string, more: Parameters<typeof serverSettings>[1] = {}): Promise<HostEnd> {
  const host = await attach(serverSettings(script, more))
  host.send(initialize)
  await host.answer('i')
  return host
}

let lastId = 0
const call = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: ++lastId,
  method: 'tools/call',
  params: { name, arguments: args },
})

/** A session with a server that says exactly what it is told to. */
const scripted = (more: Parameters<typeof serverSettings>[1] = {}): Promise<HostEnd> =>
  attach(serverSettings('raw-script.mjs', more))
const telling = (...replies: string[]): string =>
  `"_meta":{"@reply":"${Buffer.from(replies.map((reply) => `${reply}\n`).join('')).toString('base64')}"}`
const tell = (id: number, ...replies: string[]): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t",${telling(...replies)}}}`
const ok = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`

test.each(['text', 'truncated', 'nul', 'utf8', 'batch', 'duplicate', 'number', 'empty'])(
  'a line of garbage (%s) is dropped and told, and the session goes on',
  async (kind) => {
    await using host = await ready('garbage.mjs')
    const asked = call('garbage', { kind })
    host.send(asked)
    expect((await host.answer(asked.id)).result).toMatchObject({ structuredContent: { printed: kind } })
    expect(host.lines).toHaveLength(2)
    expect(host.eventsOf('session/garbage')[0]?.detail).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
  },
)

test('a storm of garbage ends the session by name', async () => {
  await using host = await scripted()
  host.send(tell(1, ...Array<string>(2000).fill('no json')))
  expect(await host.session.ended).toMatchObject({
    status: 1,
    reason: expect.stringContaining('not MCP') as string,
  })
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
})

test('answers that nobody waits for do not reach the host, nor do second ones', async () => {
  await using host = await scripted()
  host.send(tell(1, ok(7), '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}', ok(1), ok(1)))
  await host.answer(1)
  await eventually(() => host.eventsOf('session/unexpected-answer').length >= 2)
  expect(host.lines).toEqual([ok(1)])
})

test.each([
  '{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","method":"ping"}',
  '{"jsonrpc":"2.0","id":9,"method":"ping","Method":"sampling/createMessage"}',
  '{"jsonrpc":"2.0","id":9,"method":"ping","result":{}}',
  '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  '{"jsonrpc":"2.0","method":"notifications/unknown"}',
  '{"jsonrpc":"2.0","id":9,"method":"tools/call"}',
])('the host never sees %s', async (line) => {
  await using host = await scripted({ sampling: true })
  host.send(tell(1, line, ok(1)))
  await host.answer(1)
  expect(host.lines).toEqual([ok(1)])
})

test('a server that ends at once leaves an answer that says so, a closed stream and its status', async () => {
  await using host = await attach(serverSettings('crash-at-start.mjs'))
  host.send(initialize)
  expect((await host.answer('i')).error).toMatchObject({
    message: expect.stringMatching(/^mcp server fixture is unavailable: it /) as string,
    data: { code: 'ERR_SERVER_UNAVAILABLE' },
  })
  expect(await host.session.ended).toMatchObject({ status: expect.any(Number) as number })
  await eventually(() => host.socket.readableEnded || host.socket.destroyed)
  expect(host.events.filter(({ type }) => type === 'instance/state').at(-1)?.detail).toMatchObject({
    to: 'failed',
  })
})

test('a server that never answers initialize is ended by name', async () => {
  const timeouts = { initializeMs: 300, callMs: 1000, idleMs: 1000 }
  await using host = await attach(serverSettings('never-initialize.mjs', { timeouts }))
  host.send(initialize)
  expect((await host.answer('i')).error?.data).toMatchObject({ code: 'ERR_INITIALIZE_TIMEOUT' })
  expect(await host.session.ended).toMatchObject({ status: 1 })
})

test('a program that cannot be started is told to the host', async () => {
  await using host = await attach(serverSettings('echo.mjs', { command: '/no/such/program' }))
  host.send(initialize)
  expect((await host.answer('i')).error?.data).toMatchObject({ code: 'ERR_SANDBOX_EXEC' })
  await host.session.ended
})

test('an answer over the limit is an error for whom it was for, and the session goes on', async () => {
  const output = { resultBytes: 1000, lineBytes: 100_000, stderrBytes: 1000 }
  await using host = await ready('huge-line.mjs', { output })
  const [huge, small] = [call('huge', { bytes: 300_000 }), call('echo', { a: 1 })]
  host.send(huge)
  expect((await host.answer(huge.id)).error?.data).toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  host.send(small)
  expect((await host.answer(small.id)).result).toMatchObject({ structuredContent: { a: 1 } })
})

/** A call, and then in pieces a line that answers it and is longer than any line may be. */
const tooLong = (id: number, head: string, tail: string): string[] => [
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t"}}`,
  ...[head, ...Array<string>(70).fill('y'.repeat(1000)), `${tail}\n`].map(
    (piece) =>
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"@reply":"${Buffer.from(piece).toString('base64')}"}}`,
  ),
]
const narrow = { output: { resultBytes: 1000, lineBytes: 6000, stderrBytes: 1000 } }

test('an answer over the limit is told by the id at its end, too', async () => {
  await using host = await scripted(narrow)
  host.send(tell(0, ok(0)))
  await host.answer(0)
  host.send(...tooLong(1, '{"result":{"x":"', '"},"jsonrpc":"2.0","id":1}'))
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  host.send(tell(2, ok(2)))
  await host.answer(2)
})

test('an answer over the limit whose id cannot be told ends the session by name', async () => {
  await using host = await scripted(narrow)
  host.send(tell(0, ok(0)))
  await host.answer(0)
  host.send(...tooLong(1, '{"a":"', '","id":1,"jsonrpc":"2.0","result":{}}'))
  expect((await host.answer(1)).error?.data).toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  expect(await host.session.ended).toMatchObject({ status: 1 })
})

test('a line without end ends the session and is never held', async () => {
  const output = { resultBytes: 1000, lineBytes: 100_000, stderrBytes: 1000 }
  await using host = await ready('huge-line.mjs', { output })
  const before = process.memoryUsage().rss
  const endless = call('endless')
  host.send(endless)
  expect(await host.session.ended).toMatchObject({
    status: 1,
    reason: expect.stringContaining('output.line_bytes') as string,
  })
  expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
})

test('a flood waits for a host that does not read, and takes no memory of ours', async () => {
  await using host = await ready('flood-stdout.mjs')
  const pid = host.session.views()[0]?.pid ?? 0
  const written = (): string => /wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? ''
  host.socket.pause()
  const before = process.memoryUsage().rss
  host.send(call('flood'))
  const seen: string[] = []
  await eventually(() => {
    seen.push(written())
    return Number(written()) > 100_000 && seen.length > 20 && new Set(seen.slice(-20)).size === 1
  })
  expect(Number(written())).toBeLessThan(20_000_000)
  expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000)
  host.socket.resume()
  const stuck = written()
  await eventually(() => written() !== stuck)
})

test('a flood of stderr hinders nothing, and what is not kept is counted', async () => {
  await using host = await ready('flood-stderr.mjs')
  for (let i = 0; i < 5; i++) {
    host.send({ jsonrpc: '2.0', id: `p${i}`, method: 'ping' })
    await host.answer(`p${i}`)
  }
})

test('a server that asks and never reads the answers is ended', async () => {
  const more = {
    output: { resultBytes: 1000, lineBytes: 100_000, stderrBytes: 1000 },
    args: [fixture('asks-and-never-reads.mjs')],
  }
  await using host = await attach(serverSettings('echo.mjs', more))
  host.send(initialize)
  expect(await host.session.ended).toMatchObject({
    status: 1,
    reason: expect.stringContaining('does not read') as string,
  })
})

test('a server that closes its output and lives on is ended', async () => {
  await using host = await attach(serverSettings('echo.mjs', { args: [fixture('closes-stdout.mjs')] }))
  host.send(initialize)
  await host.session.ended
  expect(host.events.filter(({ type }) => type === 'instance/state').at(-1)?.detail).toMatchObject({
    to: 'stopped',
  })
})

test.each(['ignore-eof.mjs', 'ignore-sigterm.mjs', 'double-fork.mjs'])(
  '%s ends within the ladder when the host goes',
  async (script) => {
    const stop = { eofMs: 200, termMs: 300 }
    await using host = await ready(script, { stop })
    const began = performance.now()
    host.socket.end()
    await host.session.ended
    expect(performance.now() - began).toBeLessThan(200 + 300 + 500)
  },
)

test('the ladder goes step by step, and stopped is said last', async () => {
  await using host = await ready('ignore-sigterm.mjs', { stop: { eofMs: 100, termMs: 100 } })
  host.socket.end()
  expect(await host.session.ended).toMatchObject({ status: 128 + 9 })
  const states = host.eventsOf('instance/state').map(({ detail }) => detail['to'])
  expect(states).toEqual(['starting', 'ready', 'draining', 'stopping', 'stopped'])
})

test('what a server says while it ends still reaches the host', async () => {
  await using host = await attach(serverSettings('echo.mjs', { args: [fixture('says-goodbye.mjs')] }))
  host.send(initialize)
  await host.answer('i')
  host.socket.end()
  expect(await host.session.ended).toMatchObject({ status: 7 })
  await eventually(() => host.lines.length === 2)
  expect(JSON.parse(host.lines[1] ?? '')).toMatchObject({ params: { data: 'x'.repeat(100_000) } })
})
