// One control connection under every kind of peer: quick, slow, greedy, rude, gone.
import { describe, expect, it } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { RawJson } from '../../src/lib/raw-json.ts'
import type { Call, HandOver, Service } from '../../src/rpc/answering.ts'
import { eventually } from '../support/eventually.ts'
import { type RawPeer, rawPeer, serveOn } from '../support/control.ts'

/** Answers `echo`, waits in `wait` until cancelled, gives `big` of a size, streams without end in `flood`. */
class TestService implements Service {
  running = 0
  cancelled = 0
  notified = 0
  answered = 0
  head = ''
  abandoned = 0
  hostEnded = false
  attachGate: Promise<void> = Promise.resolve()

  async call(method: string, params: unknown, call: Call): Promise<unknown> {
    switch (method) {
      case 'echo':
        return { params, raw: call.text('value') }
      case 'big':
        this.answered += 1
        return new RawJson(`"${'x'.repeat(Number(call.text('size')?.raw))}"`)
      case 'wait':
      case 'tools/call':
        return this.#wait(call.signal)
      case 'cancel':
        return call.cancel(Number(call.text('id')?.raw))
      case 'flood':
        call.afterReply(async (stream) => {
          const event = { seq: 1, at: '', type: 'x'.repeat(1000), server: null, instance: null, detail: {} }
          while (!stream.signal.aborted) {
            await stream.notify('events/event', event)
            this.notified += 1
          }
        })
        return {}
      case 'broken-stream':
        call.afterReply(async (stream) => {
          await stream.notify('servers/log', { server: 'a', line: 'last', lost: 0 })
          if (call.text('how')?.raw === '"named"')
            throw new SallyportError('ERR_JOURNAL_CORRUPT', 'record 7 is lacking')
          throw new TypeError('secret detail')
        })
        return {}
      case 'crash':
        throw new TypeError('secret detail')
      case 'run-out':
        throw Object.assign(new Error('open secret path'), { code: 'EMFILE' })
      default:
        throw new SallyportError('ERR_METHOD_NOT_FOUND', `no method ${method}`)
    }
  }

  async attach(params: unknown): Promise<HandOver> {
    await this.attachGate
    if (JSON.stringify(params) !== '{"server":"a"}')
      throw new SallyportError('ERR_SERVER_NOT_FOUND', 'no such server')
    return {
      result: { session: 's-1' },
      take: (stream, head) => {
        this.head = head.toString()
        stream.write(head)
        stream
          .on('data', (chunk) => stream.write(chunk))
          .on('end', () => {
            this.hostEnded = true
            stream.end()
          })
      },
      abandon: () => void (this.abandoned += 1),
    }
  }

  async #wait(signal: AbortSignal): Promise<never> {
    this.running += 1
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    try {
      return await promise
    } finally {
      this.running -= 1
      this.cancelled += 1
    }
  }
}

const call = (id: number | string, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`

const codeOf = (line: string | null): unknown => JSON.parse(line ?? '{}').error?.data.code

describe('a control connection', () => {
  it('answers each call with its id and keeps the bytes of raw values', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send('{"jsonrpc":"2.0","id":1.0,"method":"echo","params":{"value": {"n":12345678901234567890} }}\n')
    expect(await peer.line()).toBe(
      '{"jsonrpc":"2.0","id":1.0,"result":{"params":{"value":{"n":12345678901234567000}},"raw":{"n":12345678901234567890}}}',
    )
  })

  it('answers garbage by name and goes on', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send('garbage\n[]\n{}\n\n')
    peer.send(call(1, 'nothing'))
    expect(codeOf(await peer.line())).toBe('ERR_PARSE')
    expect(codeOf(await peer.line())).toBe('ERR_BATCH_REFUSED')
    expect(codeOf(await peer.line())).toBe('ERR_INVALID_REQUEST')
    expect(codeOf(await peer.line())).toBe('ERR_METHOD_NOT_FOUND')
  })

  it('says nothing of what broke inside the daemon', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send(call(1, 'crash'))
    const line = await peer.line()
    expect(codeOf(line)).toBe('ERR_INTERNAL')
    expect(line).not.toContain('secret')
    peer.send(call(2, 'run-out'))
    const short = await peer.line()
    expect(JSON.parse(short ?? '').error).toMatchObject({ data: { code: 'ERR_SHORTAGE', retryable: true } })
    expect(short).not.toContain('secret')
  })

  it('takes a line of 10 MiB, and ends after naming one over its limit', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    const value = 'y'.repeat(10 * 1024 * 1024)
    peer.send(call(1, 'echo', { value }))
    expect((await peer.line())?.length).toBeGreaterThan(2 * value.length)
    peer.send('z'.repeat(16 * 1024 * 1024 + 1))
    expect(codeOf(await peer.line())).toBe('ERR_MESSAGE_TOO_LARGE')
    expect(await peer.line()).toBeNull()
  })

  it('answers ERR_BUSY beyond 64 requests in flight, and serves again when they end', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    for (let id = 0; id < 64; id++) peer.send(call(id, 'wait'))
    peer.send(call(64, 'echo'))
    expect(codeOf(await peer.line())).toBe('ERR_BUSY')
    expect(service.running).toBe(64)
  })

  it('answers ERR_BUSY beyond 1024 calls of tools in flight, beside which another request is served', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    for (let id = 0; id < 1025; id++) peer.send(call(id, 'tools/call'))
    expect(codeOf(await peer.line())).toBe('ERR_BUSY')
    expect(service.running).toBe(1024)
    peer.send(call(2000, 'cancel', { id: 7 }))
    const answers = [await peer.line(), await peer.line()].map((line) => JSON.parse(line ?? '{}'))
    expect(answers).toContainEqual(expect.objectContaining({ id: 2000, result: true }))
    expect(answers).toContainEqual(expect.objectContaining({ id: 7, error: expect.anything() }))
    peer.send(call(2001, 'tools/call'))
    await eventually(() => service.running === 1024)
  })

  it('refuses an id that is in flight, and cancels by id 0', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.send(call(0, 'wait') + call(0, 'wait'))
    expect(codeOf(await peer.line())).toBe('ERR_INVALID_REQUEST')
    peer.send(call(2, 'cancel', { id: 0 }))
    const answers = [await peer.line(), await peer.line()].map((line) => JSON.parse(line ?? '{}'))
    expect(answers).toContainEqual(expect.objectContaining({ id: 2, result: true }))
    expect(answers).toContainEqual(expect.objectContaining({ id: 0, error: expect.anything() }))
  })

  it('cancels what a host that went away had in flight', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    const peer = await rawPeer(served.path)
    peer.send(call(1, 'wait'))
    await eventually(() => service.running === 1)
    peer.socket.destroy()
    await eventually(() => service.cancelled === 1)
  })

  it.each([
    ['finishes writing', (peer: RawPeer) => peer.socket.end()],
    ['says a line that is too long', (peer: RawPeer) => peer.send('z'.repeat(16 * 1024 * 1024 + 1))],
  ])('cancels what a host had in flight that %s, tells it so, and ends', async (_, act) => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.send(call(1, 'wait') + call(2, 'wait'))
    await eventually(() => service.running === 2)
    act(peer)
    const told: unknown[] = []
    for (let line = await peer.line(); line !== null; line = await peer.line()) told.push(codeOf(line))
    expect(told.filter((code) => code === 'ERR_CALL_CANCELLED')).toHaveLength(2)
    expect(service.cancelled).toBe(2)
  })

  it('still answers a host that only finished writing', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.socket.end(call(1, 'echo') + call(2, 'echo'))
    expect(JSON.parse((await peer.line()) ?? '{}').id).toBe(1)
    expect(JSON.parse((await peer.line()) ?? '{}').id).toBe(2)
    expect(await peer.line()).toBeNull()
  })

  it('names a line that was cut off by the end', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.socket.end('{"jsonrpc":')
    expect(codeOf(await peer.line())).toBe('ERR_PARSE')
    expect(await peer.line()).toBeNull()
  })
})

describe('a host that does not read', () => {
  it('is not read either, so it costs the daemon a bounded amount', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.socket.pause()
    const line = call(1, 'big', { size: 65_536 })
    let sent = 0
    const before = process.memoryUsage().rss
    while (sent < 20_000 && !peer.socket.writableNeedDrain) {
      peer.send(line)
      sent += 1
      if (sent % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(peer.socket.writableNeedDrain).toBe(true)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })

  it('gets no more notifications than fit, and all of them in order once it reads', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.socket.pause()
    peer.send(call(1, 'flood'))
    let before = -1
    await eventually(() => {
      const isStill = service.notified > 0 && service.notified === before
      before = service.notified
      return isStill
    })
    expect(service.notified).toBeLessThan(2000)
    const stopped = service.notified
    peer.socket.resume()
    await eventually(() => service.notified > stopped + 100)
  })

  it('follows eight streams on one connection, and no more, however they are asked for', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send([1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => call(id, 'flood')).join(''))
    const codes: unknown[] = []
    while (codes.length < 9) {
      const line = (await peer.line()) ?? '{"id":0}'
      if ('id' in JSON.parse(line)) codes.push(codeOf(line))
    }
    expect(codes.filter((code) => code === undefined)).toHaveLength(8)
    expect(codes).toContain('ERR_BUSY')
  })

  it.each([
    ['named', 'ERR_JOURNAL_CORRUPT', 'record 7 is lacking'],
    ['unforeseen', 'ERR_INTERNAL', 'broken-stream failed inside the daemon'],
  ])('says why a stream ends that fails, behind what it told, and ends: %s', async (how, code, reason) => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send(call(1, 'broken-stream', { how }))
    expect(JSON.parse((await peer.line()) ?? '')).toMatchObject({ id: 1, result: {} })
    expect(JSON.parse((await peer.line()) ?? '')).toMatchObject({ method: 'servers/log' })
    expect(JSON.parse((await peer.line()) ?? '')).toMatchObject({
      id: null,
      error: { data: { code }, message: expect.stringContaining(reason) },
    })
    expect(await peer.line()).toBeNull()
  })

  it('slows nobody else', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using slow = await rawPeer(served.path)
    slow.socket.pause()
    for (let id = 0; id < 60; id++) slow.send(call(id, 'big', { size: 1_000_000 }))
    await using quick = await rawPeer(served.path)
    const started = performance.now()
    for (let id = 0; id < 50; id++) {
      quick.send(call(id, 'echo'))
      await quick.line()
    }
    expect(performance.now() - started).toBeLessThan(1000)
  })

  it('is cut off once its unread answers pass the bound', async () => {
    await using served = await serveOn(new TestService(), { unreadBytes: 1_000_000 })
    await using peer = await rawPeer(served.path)
    peer.socket.pause()
    peer.send(Array.from({ length: 60 }, (_, id) => call(id, 'big', { size: 100_000 })).join(''))
    peer.send(call(99, 'big', { size: 2_000_000 }))
    peer.socket.resume()
    await eventually(() => peer.socket.destroyed || peer.socket.readableEnded)
  })
})

describe('the connections of one uid', () => {
  const limits = { ownBytes: 1000, sharedBytes: 100_000 }
  const begun = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"value":"${'x'.repeat(30_000)}`

  it('have lines kept that have not ended, as far as there is room for one user, and the rest are told so', async () => {
    await using served = await serveOn(new TestService(), limits)
    const peers = await Promise.all(Array.from({ length: 5 }, () => rawPeer(served.path)))
    const lines = peers.map((peer) => peer.line())
    for (const peer of peers) peer.send(begun)
    let cut = 0
    for (const line of lines) void line.then(() => (cut += 1))
    await eventually(() => cut === 2)
    for (const peer of peers) peer.send('"}}\n')
    const codes = (await Promise.all(lines)).map(codeOf)
    expect(codes.filter((code) => code === 'ERR_BUSY')).toHaveLength(2)
    expect(codes.filter((code) => code === undefined)).toHaveLength(3)
    // Whoever was refused goes on behind the line that was.
    for (const peer of peers) {
      peer.send(`${begun}"}}\n`)
      expect(JSON.parse((await peer.line()) ?? '{}')).toHaveProperty('result')
    }
    for (const peer of peers) await peer[Symbol.asyncDispose]()
  })

  it('are ended where a line without room does not begin with an id', async () => {
    await using served = await serveOn(new TestService(), limits)
    await using peer = await rawPeer(served.path)
    peer.send(`{"jsonrpc":"2.0","params":{"value":"${'x'.repeat(200_000)}`)
    expect(codeOf(await peer.line())).toBe('ERR_BUSY')
    expect(await peer.line()).toBeNull()
  })

  it('have calls kept that are not answered, as far as there is room; small ones always', async () => {
    const service = new TestService()
    await using served = await serveOn(service, limits)
    await using one = await rawPeer(served.path)
    await using other = await rawPeer(served.path)
    const long = { value: 'x'.repeat(30_000) }
    for (const id of [1, 2, 3]) one.send(call(id, 'wait', long))
    await eventually(() => service.running === 3)
    other.send(call(1, 'echo', long))
    expect(codeOf(await other.line())).toBe('ERR_BUSY')
    other.send(call(2, 'echo', { value: 1 }))
    expect(codeOf(await other.line())).toBeUndefined()
    one.send(call(9, 'cancel', { id: 2 }))
    await eventually(() => service.running === 2)
    other.send(call(3, 'echo', long))
    expect(codeOf(await other.line())).toBeUndefined()
  })

  it('have room again for what was read', async () => {
    await using served = await serveOn(new TestService(), { ownBytes: 1000, sharedBytes: 3_000_000 })
    for (const _ of [1, 2]) {
      const reader = await rawPeer(served.path)
      reader.send(call(1, 'big', { size: 2_000_000 }))
      // Its connection stays, and asks for nothing more.
      expect(await reader.line()).toMatch(/^.{2000000,}}$/)
    }
  })

  it('have answers kept that are not read, as far as there is room', async () => {
    const service = new TestService()
    await using served = await serveOn(service, { ownBytes: 1000, sharedBytes: 3_000_000 })
    const peers = await Promise.all(Array.from({ length: 4 }, () => rawPeer(served.path)))
    for (const peer of peers) peer.socket.pause()
    for (const peer of peers) peer.send(call(1, 'big', { size: 2_000_000 }))
    await eventually(() => service.answered === 4)
    const lines = await Promise.all(peers.map((peer) => (peer.socket.resume(), peer.line())))
    expect(lines.filter((line) => line?.endsWith('}') === true)).toHaveLength(1)
    for (const peer of peers) await peer[Symbol.asyncDispose]()
  })
})

describe('session/attach', () => {
  it('hands over the connection with every byte behind the request', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.send(`${call(1, 'session/attach', { server: 'a' })}{"not":"control"}\nhal`)
    expect(await peer.line()).toBe('{"jsonrpc":"2.0","id":1,"result":{"session":"s-1"}}')
    expect(await peer.line()).toBe('{"not":"control"}')
    peer.send('f a line\n')
    expect(await peer.line()).toBe('half a line')
    expect(service.head).toBe('{"not":"control"}\nhal')
  })

  it('that is refused ends the connection, so that nothing behind it is taken for a control call', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send(call(1, 'session/attach', { server: 'b' }) + call(2, 'echo'))
    expect(codeOf(await peer.line())).toBe('ERR_SERVER_NOT_FOUND')
    expect(await peer.line()).toBeNull()
  })

  it('is refused on a connection in use', async () => {
    await using served = await serveOn(new TestService())
    await using peer = await rawPeer(served.path)
    peer.send(call(1, 'wait') + call(2, 'session/attach', { server: 'a' }))
    expect(codeOf(await peer.line())).toBe('ERR_BUSY')
  })

  it('serves a host that had finished writing before its request was read, many lines behind others', async () => {
    const service = new TestService()
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.socket.end(`${'\n'.repeat(200)}${call(1, 'session/attach', { server: 'a' })}last words\n`)
    expect(await peer.line()).toContain('s-1')
    expect(await peer.line()).toBe('last words')
    expect(await peer.line()).toBeNull()
    expect(service.hostEnded).toBe(true)
  })

  it('serves a host that finishes writing while the session is being granted', async () => {
    const service = new TestService()
    const gate = Promise.withResolvers<void>()
    service.attachGate = gate.promise
    await using served = await serveOn(service)
    await using peer = await rawPeer(served.path)
    peer.socket.end(`${call(1, 'session/attach', { server: 'a' })}last words\n`)
    await new Promise((resolve) => setImmediate(resolve))
    gate.resolve()
    expect(await peer.line()).toContain('s-1')
    expect(await peer.line()).toBe('last words')
    expect(await peer.line()).toBeNull()
    expect(service.abandoned).toBe(0)
  })
})

it('is read no more than 64 lines of in one turn, in their order, to the last', async () => {
  const asked: unknown[] = []
  const service: Service = {
    call: async (_method, params) => asked.push(params),
    attach: async () => {
      throw new Error('nobody attaches')
    },
  }
  await using server = await serveOn(service, { requestsInFlight: 10_000 })
  await using peer = await rawPeer(server.path)
  let most = 0
  let isOver = false
  const turns = (before: number): void => {
    most = Math.max(most, asked.length - before)
    if (!isOver) setImmediate(turns, asked.length)
  }
  turns(0)
  const all = Array.from({ length: 5000 }, (_, n) => n)
  peer.send(all.map((n) => `{"jsonrpc":"2.0","id":${n},"method":"m","params":{"n":${n}}}\n`).join(''))
  peer.socket.end()
  while ((await peer.line()) !== null);
  isOver = true
  expect(asked).toEqual(all.map((n) => ({ n })))
  expect(most).toBeLessThanOrEqual(2 * 64)
})
