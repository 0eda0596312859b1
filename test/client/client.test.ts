// The typed client and the MCP transport, against a real daemon and a real sandboxed server.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../../src/client/client.ts'
import { createTransport } from '../../src/client/transport.ts'
import type { OperatorMethods } from '../../src/rpc/protocol.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { rawPeer, serveOn } from '../support/control.ts'
import { following } from '../support/following.ts'
import { handled } from '../support/handled.ts'
import { ownDaemon } from '../support/own-daemon.ts'

let at: TestDaemon
beforeAll(async () => {
  at = await daemon(configOf({ echo: fixture('echo'), slow: fixture('slow') }))
})
afterAll(() => at[Symbol.asyncDispose]())

describe('the client', () => {
  it('greets, and knows whom it reached and who it is itself', async () => {
    await using client = await at.connect()
    expect(client.hello).toMatchObject({
      protocol: 'sallyport/1',
      pid: at.process.pid,
      principal: { kind: 'uid', id: String(process.getuid?.()), attributes: { pid: process.pid } },
    })
  })

  it('refuses what speaks another protocol', async () => {
    const other = {
      call: async () => ({ protocol: 'other/9' }),
      attach: () => Promise.reject(new Error('no')),
    }
    await using served = await serveOn(other)
    await expect(connect({ at: { socket: served.path } })).rejects.toMatchObject({
      code: 'ERR_DAEMON_PROTOCOL',
    })
  })

  it.each([
    ['sallyport/hello', { protocol: 'sallyport/9' }],
    ['sallyport/hello', { protocol: 'sallyport/9', of: 'another protocol' }],
    ['session/attach', { protocol: 'sallyport/9', server: 'echo' }],
    ['session/attach', { protocol: 'sallyport/9', of: 'another protocol' }],
  ])('is refused by a daemon of another protocol, by name: %s %j', async (method, params) => {
    for (const socket of ['host/host.sock', 'operator/operator.sock']) {
      await using peer = await rawPeer(`${at.runtimeDir}/${socket}`)
      peer.send(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`)
      const { error } = JSON.parse((await peer.line()) ?? '{}')
      expect(error.data).toMatchObject({ code: 'ERR_DAEMON_PROTOCOL', protocol: 'sallyport/1' })
      expect(error.message).toContain('"sallyport/9"')
    }
  })

  it('makes calls, whose arguments and results keep every byte', async () => {
    await using peer = await rawPeer(`${at.runtimeDir}/host/host.sock`)
    const args = '{"n":12345678901234567890,"f":1.0,"__proto__":{"x":1},"b":2,"a":1}'
    peer.send(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server":"echo","tool":"echo","arguments":${args}}}\n`,
    )
    const line = await peer.line()
    // The fixture parses and writes again, so its own reading of the number is what comes back, unquoted and unrounded by us.
    expect(line).toContain('"structuredContent":{"n":12345678901234567000,"f":1')
    expect(line).toMatch(/^\{"jsonrpc":"2\.0","id":1,"result":\{"call_id":"c-/)
  })

  it('follows events from a number on, in order, and ends with its signal', async () => {
    await using client = await at.connect('operator')
    await client.call('servers/start', { server: 'slow' })
    const stop = new AbortController()
    const seen: number[] = []
    for await (const { seq } of client.events({ since: 0, signal: stop.signal })) {
      seen.push(seq)
      if (seen.length === 2) stop.abort()
    }
    expect(seen).toEqual([1, 2])
  })

  it('is told from when on no event is missed', async () => {
    await using client = await at.connect('operator')
    const seen: string[] = []
    await using _follower = await following(
      (waiting) => client.events(waiting),
      ({ type }) => seen.push(type),
    )
    await client.call('daemon/reload', {})
    await eventually(() => seen.includes('config/applied'))
  })

  it('is told when `since` is of another life of the daemon', async () => {
    await using client = await at.connect()
    await expect(client.call('events/subscribe', { since: 1_000_000 })).rejects.toMatchObject({
      code: 'ERR_INVALID_PARAMS',
    })
  })

  it('cancels a call at the daemon by its signal', async () => {
    await using client = await at.connect()
    await client.call('servers/start', { server: 'slow' })
    const stop = new AbortController()
    const call = handled(
      client.call(
        'tools/call',
        { server: 'slow', tool: 'wait', arguments: { ms: 60_000 } },
        { signal: stop.signal },
      ),
    )
    for await (const { type } of client.events({ since: 0 })) if (type === 'call/started') break
    stop.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    await using operator = await at.connect('operator')
    await eventually(async () =>
      (await operator.call('servers/logs', { server: 'slow' })).lines.includes('cancelled'),
    )
  })
})

describe('a host', () => {
  it.each(['servers/test', 'servers/logs', 'policy/explain', 'daemon/shutdown'] as const)(
    'may not call %s',
    async (method) => {
      await using host = await at.connect('host')
      const params = { server: 'echo', tool: 'echo' } as OperatorMethods[typeof method]['params']
      await expect(host.call(method, params)).rejects.toMatchObject({ code: 'ERR_NOT_AUTHORISED' })
    },
  )

  it.each([
    ['tools/call', { server: 'echo' }, 'ERR_INVALID_PARAMS'],
    ['tools/call', { server: 'echo', tool: 'echo', arguments: [] }, 'ERR_INVALID_PARAMS'],
    ['tools/call', { server: 'echo', tool: 'echo', more: 1 }, 'ERR_INVALID_PARAMS'],
    ['servers/get', [], 'ERR_INVALID_PARAMS'],
    ['servers/get', { server: '../echo' }, 'ERR_INVALID_PARAMS'],
    ['servers/get', { server: '__proto__' }, 'ERR_SERVER_NOT_FOUND'],
    ['__proto__', {}, 'ERR_METHOD_NOT_FOUND'],
    ['constructor', {}, 'ERR_METHOD_NOT_FOUND'],
    ['audit/query', {}, 'ERR_NOT_AUTHORISED'],
    ['daemon/obey', {}, 'ERR_METHOD_NOT_FOUND'],
    ['calls/cancel', {}, 'ERR_INVALID_PARAMS'],
    ['calls/cancel', { reason: 'of no call' }, 'ERR_INVALID_PARAMS'],
    ['sallyport/hello', { protocol: 1 }, 'ERR_INVALID_PARAMS'],
    ['session/attach', { server: 'echo', protocol: null }, 'ERR_INVALID_PARAMS'],
    ['session/attach', { server: 'echo', protocol: '9'.repeat(65) }, 'ERR_INVALID_PARAMS'],
    ['session/attach', { server: 'echo', of: 'this protocol' }, 'ERR_INVALID_PARAMS'],
  ])('that says %s %j is told %s', async (method, params, code) => {
    await using peer = await rawPeer(`${at.runtimeDir}/host/host.sock`)
    peer.send(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`)
    expect(JSON.parse((await peer.line()) ?? '{}').error.data.code).toBe(code)
  })
})

it('an MCP client of TypeScript reaches a server without any process between', async () => {
  const mcp = new McpClient({ name: 'host', version: '1' })
  await mcp.connect(createTransport({ server: 'echo', at: { runtimeDir: at.runtimeDir } }))
  expect(await mcp.callTool({ name: 'echo', arguments: { a: 1 } })).toMatchObject({
    structuredContent: { a: 1 },
  })
  await mcp.close()
  await eventually(async () => {
    const { instances } = await at.client.call('servers/get', { server: 'echo' })
    return instances.every(({ purpose, state }) => purpose !== 'session' || state === 'stopped')
  })
})

it('a transport to a server that is not there fails with the daemon’s code', async () => {
  const mcp = new McpClient({ name: 'host', version: '1' })
  const transport = createTransport({ server: 'nobody', at: { runtimeDir: at.runtimeDir } })
  await expect(mcp.connect(transport)).rejects.toMatchObject({ code: 'ERR_SERVER_NOT_FOUND' })
})

describe('a daemon that takes the connection and says nothing', () => {
  it('is told to a transport as it is to a client, and not waited for without end', async () => {
    await using silent = await ownDaemon(() => undefined, { greets: false })
    const expected = {
      code: 'ERR_DAEMON_UNAVAILABLE',
      message: expect.stringMatching(/ took the connection and said nothing for 10000 ms$/),
    }
    const transport = createTransport({ server: 'echo', at: silent })
    const attempts = [handled(transport.start()), handled(connect({ at: silent }))]
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject(expected)
  })

  it('is told to who asks for what it knows, also once it has greeted, and what may take long goes on', async () => {
    await using silent = await ownDaemon(() => undefined)
    await using client = await connect({ at: silent })
    let isStarting = true
    const starting = handled(
      client.call('servers/start', { server: 'echo' }).finally(() => (isStarting = false)),
    )
    const asked = [
      client.call('servers/list', {}),
      client.call('servers/get', { server: 'echo' }),
      client.call('tools/list', {}),
      client.call('approvals/list', {}),
    ].map((one) => handled<unknown>(one))
    for (const one of asked)
      await expect(one).rejects.toMatchObject({
        code: 'ERR_DAEMON_UNAVAILABLE',
        message: expect.stringMatching(/ did not answer \w+\/\w+ for 60000 ms: its daemon stands still/),
      })
    expect(isStarting).toBe(true)
    await client[Symbol.asyncDispose]()
    await expect(starting).rejects.toMatchObject({ code: 'ERR_DAEMON_UNAVAILABLE' })
  })

  it('leaves a transport that is closed meanwhile at once', async () => {
    const asked = Promise.withResolvers<Socket>()
    await using silent = await ownDaemon(({ socket }) => asked.resolve(socket), { greets: false })
    const transport = createTransport({ server: 'echo', at: silent })
    const starting = handled(transport.start())
    const left = once(await asked.promise, 'close')
    await transport.close()
    await expect(starting).rejects.toMatchObject({ code: 'ERR_CALL_CANCELLED' })
    await left
  })
})

describe('a daemon that answers with what is none of its protocol', () => {
  it.each([
    { error: 5 },
    { error: null },
    { error: { code: 1, message: { toString: 5 } } },
    { result: null },
    { result: [] },
    { result: 'fine' },
    {},
  ])('is told as that: %j', async (members) => {
    await using own = await ownDaemon(({ reply }) => reply(members))
    await using client = await connect({ at: own })
    const asked = [
      client.call('servers/list', {}),
      client.callText('servers/list', {}),
      client.events().next(),
      client.logs('any').next(),
      client.approvals().next(),
      client.audit().next(),
    ].map((one) => handled<unknown>(one))
    for (const one of asked) await expect(one).rejects.toMatchObject({ code: 'ERR_DAEMON_PROTOCOL' })
  })

  it('is told as that by who follows it, too', async () => {
    await using own = await ownDaemon(({ socket, reply }) => {
      reply({ result: { subscribed: true, seq: 0 } })
      socket.write('{"jsonrpc":"2.0","method":"events/event","params":null}\n')
    })
    await using client = await connect({ at: own })
    await expect(client.events().next()).rejects.toMatchObject({ code: 'ERR_DAEMON_PROTOCOL' })
  })
})
