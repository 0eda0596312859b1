// The life of a connection that carries a secret: one upstream of its own, and over with its lease.
import type { Socket } from 'node:net'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { intercepted, talk, token, until } from '../../support/intercepted.ts'

type Way = Awaited<ReturnType<typeof intercepted>>
const use = (at: Way, ...more: readonly string[]): string =>
  [
    'GET / HTTP/1.1',
    `Host: ${at.authority}`,
    `Authorization: Bearer ${at.placeholder}`,
    ...more,
    '',
    '',
  ].join('\r\n')
const free = (at: Way): string => `GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`
const slow = { http: () => undefined }

test('each connection of a client has a connection upstream of its own, used again and again', async () => {
  const ports: (number | undefined)[] = []
  await using at = await intercepted({
    http: (request, response) => {
      ports.push(request.socket.remotePort)
      response.end('<end>')
    },
  })
  using _ = await at.lease()
  const [one, other] = await Promise.all([at.raw(), at.raw()])
  for (const socket of [one, other, one, other]) {
    socket.write(use(at))
    await until(socket, '<end>')
  }
  expect(at.log.dialled).toBe(2)
  expect(ports[0]).toBe(ports[2])
  expect(ports[1]).toBe(ports[3])
  expect(ports[0]).not.toBe(ports[1])
})

describe('when its lease ends', () => {
  test.each<readonly [string, (lease: { end(): void }) => void, number]>([
    ['with the call', (lease) => lease.end(), 20_000],
    ['at its deadline', () => undefined, 400],
  ])(
    '%s, a connection that carried a swap is cut, in the middle of an answer too',
    async (_, end, deadlineMs) => {
      await using at = await intercepted({
        http: (__, response) => void response.writeHead(200, { 'Content-Length': 100 }).write('begun'),
      })
      const lease = await at.lease(deadlineMs)
      const socket = await at.raw()
      socket.write(use(at))
      await until(socket, 'begun')
      end(lease)
      await eventually(() => at.served.size === 0 && at.upstreams.size === 0 && at.clients.size === 0)
      expect(at.log.cut).toEqual(['lease-ended'])
    },
  )

  test('an idle one is cut as well, and one that carried nothing is not', async () => {
    await using at = await intercepted({ http: (_, response) => response.end('<end>') })
    const lease = await at.lease()
    const [carrier, other] = await Promise.all([at.raw(), at.raw()])
    carrier.write(use(at))
    other.write(free(at))
    await Promise.all([until(carrier, '<end>'), until(other, '<end>')])
    lease.end()
    await eventually(() => at.clients.size === 1)
    other.write(free(at))
    expect(await until(other, '<end>')).toContain('200')
    expect(at.log.cut).toEqual(['lease-ended'])
  })

  test('while the host is being dialled, the secret is never sent', async () => {
    const had: unknown[] = []
    const { promise: dialling, resolve } = Promise.withResolvers<void>()
    await using at = await intercepted({ http: (request) => had.push(request.headers), dialling })
    const lease = await at.lease()
    const socket = await at.raw()
    socket.write(use(at))
    await eventually(() => at.log.dialled === 1)
    lease.end()
    resolve()
    await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
    expect(had).toEqual([])
  })

  test('a call at the same time keeps what was swapped for both', async () => {
    await using at = await intercepted({ http: (_, response) => response.end('<end>') })
    const [first, second] = [await at.lease(), await at.lease()]
    const socket = await at.raw()
    socket.write(use(at))
    await until(socket, '<end>')
    first.end()
    socket.write(use(at))
    expect(await until(socket, '<end>')).toContain('200')
    second.end()
    await eventually(() => at.clients.size === 0)
    expect(at.log.cut).toEqual(['lease-ended'])
  })
})

test('a client that leaves ends the connection upstream', async () => {
  await using at = await intercepted(slow)
  using _ = await at.lease()
  const socket = await at.raw()
  socket.write(use(at))
  await eventually(() => at.upstreams.size === 1)
  socket.destroy()
  await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
})

test('a host that leaves ends the client’s connection', async () => {
  await using at = await intercepted({ http: (_, response) => response.end('<end>') })
  const socket = await at.raw()
  socket.write(free(at))
  await until(socket, '<end>')
  for (const upstream of at.upstreams) upstream.destroy()
  await eventually(() => at.clients.size === 0 && at.served.size === 0)
})

test('a client that reads slowly holds the host back, and not our memory', async () => {
  let sent = 0
  await using at = await intercepted({
    http: (_, response) => {
      const part = Buffer.alloc(1_000_000)
      const more = (): void => {
        let isRoom = true
        for (; isRoom && sent < 200; sent++) isRoom = response.write(part)
        if (sent < 200) response.once('drain', more)
      }
      more()
    },
  })
  const socket = await at.raw()
  socket.pause()
  socket.write(free(at))
  let before = -1
  await eventually(() => {
    const isStill = sent === before && sent > 0
    before = sent
    return isStill && at.upstreams.size === 1
  })
  expect(sent).toBeLessThan(50)
  socket.destroy()
})

/** What frames carry, joined. */
function payloadOf(frames: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < frames.length;) {
    const short = (frames[at + 1] ?? 0) & 0x7f
    const head = short < 126 ? 2 : short === 126 ? 4 : 10
    const length =
      head === 2 ? short : head === 4 ? frames.readUInt16BE(at + 2) : Number(frames.readBigUInt64BE(at + 2))
    parts.push(frames.subarray(at + head, at + head + length))
    at += head + length
  }
  return Buffer.concat(parts)
}

describe('a websocket', () => {
  const websocket = { websocket: true }
  const upgrade = (at: Way, ...more: readonly string[]): string =>
    use(
      at,
      'Connection: keep-alive, Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Extensions: permessage-deflate',
      ...more,
    )
  const accept = createHash('sha1')
    .update('dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
    .digest('base64')
  const agreeing = (then: (socket: Socket, head: string) => void) => (socket: Socket) => {
    socket.once('data', (head: Buffer) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
      then(socket, head.toString('latin1'))
    })
  }
  const frame = (text: string): Buffer => Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)])

  test('passes where the entry lists it, with the secret in its head, and redacted on its way back', async () => {
    let head = ''
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket, text) => {
        head = text
        socket.on('data', (part: Buffer) =>
          socket.write(Buffer.concat([part, frame(`you are ${token}`), frame('<end>')])),
        )
      }),
    })
    using _ = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    expect(await until(socket, '\r\n\r\n')).toContain(`Sec-WebSocket-Accept: ${accept}`)
    expect(head).toContain(`Authorization: Bearer ${token}`)
    expect(head).toContain('Upgrade: websocket')
    expect(head).not.toMatch(/extensions/i)
    socket.write(frame('hello'))
    const answer = await until(socket, '<end>')
    expect(answer).toContain('hello')
    expect(answer).toContain(`you are ${'*'.repeat(token.length)}`)
    expect(answer).not.toContain(token)
    expect(at.log.redacted).toEqual(['api'])
  })

  const fragment = (isFinal: boolean, opcode: number, text: string): Buffer =>
    Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, text.length]), Buffer.from(text)])

  test('shows no secret that its host cuts into fragments, wherever, with pings between them', async () => {
    const cuts = Array.from({ length: token.length - 1 }, (_, at) => at + 1)
    const messages = cuts.flatMap((cut) => [
      fragment(false, 1, `you are ${token.slice(0, cut)}`),
      fragment(true, 9, 'ping'),
      fragment(true, 0, `${token.slice(cut)}.`),
    ])
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.write(Buffer.concat([...messages, frame('<end>')]))),
    })
    using _ = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    const answer = await until(socket, '<end>')
    const payload = payloadOf(Buffer.from(answer.slice(answer.indexOf('\r\n\r\n') + 4), 'latin1')).toString()
    expect(payload.replaceAll('ping', '')).toBe(
      `${`you are ${'*'.repeat(token.length)}.`.repeat(cuts.length)}<end>`,
    )
  })

  test('has each message at once, though it ends as the secret begins', async () => {
    const message = `waits for ${token.slice(0, 5)}`
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.write(frame(message))),
    })
    using _ = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    expect(await until(socket, message)).toContain(frame(message).toString('latin1'))
  })

  test('passes on long messages byte for byte', async () => {
    const long = Buffer.alloc(300_000, 'abcdefg')
    const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(BigInt(long.length), 2)
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.write(Buffer.concat([head, long, frame('<end>')]))),
    })
    using _ = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    const all = Buffer.from(await until(socket, '<end>'), 'latin1')
    expect(payloadOf(all.subarray(all.indexOf('\r\n\r\n') + 4))).toEqual(
      Buffer.concat([long, Buffer.from('<end>')]),
    )
  })

  test.each([
    ['is masked', Buffer.from([0x81, 0x81, 0, 0, 0, 0, 65])],
    ['is compressed', Buffer.from([0xc1, 1, 65])],
    ['has a reserved opcode', Buffer.from([0x83, 1, 65])],
    ['continues nothing', Buffer.from([0x80, 1, 65])],
    ['is a fragment of a ping', Buffer.from([0x09, 1, 65])],
    ['is a long ping', Buffer.concat([Buffer.from([0x89, 126, 0, 126]), Buffer.alloc(126)])],
    ['begins a message within another', Buffer.from([0x01, 1, 65, 0x81, 1, 66])],
    ['is longer than anything', Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255])],
  ])('is ended by a frame that %s', async (_, bytes) => {
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.write(bytes)),
    })
    using _lease = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
    expect(at.log.cut).toEqual(['websocket-frame'])
  })

  test('is cut when its lease ends', async () => {
    await using at = await intercepted({ injection: websocket, raw: agreeing(() => undefined) })
    const lease = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    await until(socket, '\r\n\r\n')
    lease.end()
    await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
    expect(at.log.cut).toEqual(['lease-ended'])
  })

  test('that the host declines is an answer like any other', async () => {
    await using at = await intercepted({
      injection: websocket,
      http: (request, response) => response.writeHead(401).end(`not you, ${request.headers.authorization}`),
    })
    using _ = await at.lease()
    const answer = await talk(await at.raw(), upgrade(at))
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    expect(answer).toContain('not you, Bearer ***')
    expect(answer).not.toContain(token)
  })

  test.each([
    ['another protocol', 'Upgrade: h2c'],
    ['two protocols', 'Upgrade: websocket, h2c'],
  ])('that is %s is refused', async (_, line) => {
    await using at = await intercepted({ injection: websocket })
    const answer = await talk(await at.raw(), use(at, 'Connection: Upgrade', line))
    expect(answer).toMatch(/^HTTP\/1\.1 403 /)
    expect(at.log.dialled).toBe(0)
  })
})
