// Websockets to a host that carries a credential: upgraded where the entry lists it, and looked through both ways.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { interceptLimits } from '../../../src/egress/intercept/limits.ts'
import { passUpgrade } from '../../../src/egress/intercept/upgrade.ts'
import { Refusal, refuseBare } from '../../../src/egress/intercept/refusal.ts'
import { Upstream } from '../../../src/egress/intercept/upstream.ts'
import { eventually } from '../../support/eventually.ts'
import { intercepted, otherToken, talk, token, until } from '../../support/intercepted.ts'
import { host as wireHost, leased, Wire } from '../../support/intercepted-wire.ts'

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

/** A frame as a client sends it. */
function masked(first: number, text: string | Buffer): Buffer {
  const payload = Buffer.from(text as string, 'latin1')
  const mask = randomBytes(4)
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = first
  head[1] = 0x80 | (head.length === 2 ? length : head.length === 4 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ (mask[at & 3] ?? 0))])
}

/** What short frames of a client carry, joined; the last one may be cut. */
function unmasked(frames: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < frames.length;) {
    const length = (frames[at + 1] ?? 0) & 0x7f
    const mask = frames.subarray(at + 2, at + 6)
    parts.push(
      frames.subarray(at + 6, at + 6 + length).map((byte, index) => byte ^ (mask[index & 3] ?? 0)) as Buffer,
    )
    at += 6 + length
  }
  return Buffer.concat(parts)
}

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

const fragment = (isFinal: boolean, opcode: number, text: string): Buffer =>
  Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, text.length]), Buffer.from(text)])

describe('a websocket', () => {
  test('passes where the entry lists it, with the secret in its head, and redacted on its way back', async () => {
    let head = ''
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket, text) => {
        head = text
        socket.on('data', (part: Buffer) =>
          socket.write(
            Buffer.concat([frame(unmasked(part).toString()), frame(`you are ${token}`), frame('<end>')]),
          ),
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
    socket.write(masked(0x81, 'hello'))
    const answer = await until(socket, '<end>')
    expect(answer).toContain('hello')
    expect(answer).toContain(`you are ${'*'.repeat(token.length)}`)
    expect(answer).not.toContain(token)
    expect(at.log.redacted).toEqual(['api'])
  })

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

  test('shows at most seven letters of a secret that its host cuts over messages, wherever', async () => {
    const cuts = Array.from({ length: token.length - 1 }, (_, at) => at + 1)
    const messages = cuts.flatMap((cut) => [
      frame(`you are ${token.slice(0, cut)}`),
      fragment(true, 9, 'ping'),
      frame(`${token.slice(cut)}.`),
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
    const shown = (cut: number): string => (cut < 8 ? token.slice(0, cut) : '*'.repeat(cut))
    expect(payload.replaceAll('ping', '')).toBe(
      `${cuts.map((cut) => `you are ${shown(cut)}${'*'.repeat(token.length - cut)}.`).join('')}<end>`,
    )
    expect(at.log.redacted).toEqual(['api'])
  })

  test.each([
    ['messages', 0x81],
    ['pings', 0x89],
  ])('shows as much of one that comes letter by letter in %s, in base64, too', async (_, first) => {
    const letters = (text: string): Buffer =>
      Buffer.concat(Array.from(text).map((it) => Buffer.concat([Buffer.from([first, 1]), Buffer.from(it)])))
    const encoded = btoa(token).replace(/=+$/, '').slice(0, -1)
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) =>
        socket.write(Buffer.concat([letters(`<${token}|${encoded}>`), frame('<end>')])),
      ),
    })
    using _lease = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    const answer = await until(socket, '<end>')
    const payload = payloadOf(Buffer.from(answer.slice(answer.indexOf('\r\n\r\n') + 4), 'latin1')).toString()
    expect(payload).toMatch(
      new RegExp(`^<.{7}\\*{${token.length - 7}}\\|.{7}\\*{${encoded.length - 7}}><end>$`),
    )
  })

  /** Connects, says frames once the host agreed, and gives what the host had of them. */
  const sends = async (at: Way, frames: Buffer): Promise<void> => {
    const socket = await at.raw()
    socket.on('error', () => undefined).write(upgrade(at))
    await until(socket, '\r\n\r\n')
    socket.resume().write(frames)
    await eventually(() => at.served.size === 0 && at.upstreams.size === 0)
  }
  const listening = async () => {
    const had: Buffer[] = []
    const at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.on('data', (part: Buffer) => had.push(part))),
    })
    return {
      ...at,
      had: () => unmasked(Buffer.concat(had)),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    }
  }

  const ways: readonly (readonly [string, (text: string) => Buffer])[] = [
    ['one message', (text) => masked(0x81, `is ${text}`)],
    ['two messages', (text) => Buffer.concat([masked(0x81, text.slice(0, 9)), masked(0x82, text.slice(9))])],
    [
      'fragments with a ping between them',
      (text) =>
        Buffer.concat([masked(0x01, text.slice(0, 9)), masked(0x89, 'x'), masked(0x80, text.slice(9))]),
    ],
    ['a message for each letter', (text) => Buffer.concat(Array.from(text).map((it) => masked(0x81, it)))],
    ['a ping', (text) => masked(0x89, text)],
    ['a close', (text) => masked(0x88, `\x03\xe8${text}`)],
    ['base64', (text) => masked(0x81, btoa(`token:${text}`))],
  ]
  test.each(ways)(
    'is ended by a placeholder in %s, its own or another’s, before that is complete',
    async (_, say) => {
      await using at = await listening()
      using _lease = await at.lease()
      using other = at.broker.forSandbox({
        server: 'mail',
        instance: at.target.instance,
        injections: at.secrets.swap.injections,
        violated: () => undefined,
      })
      const foreign = other.environment['API_TOKEN'] ?? ''
      for (const [text, credential, reason] of [
        [at.placeholder, 'api', 'other-place'],
        [at.otherPlaceholder, 'other', 'other-host'],
        [foreign, null, 'other-sandbox'],
      ] as const) {
        await sends(at, say(text))
        expect(at.violations.splice(0)).toMatchObject([{ credential, reason }])
        expect(at.log.cut.splice(0)).toEqual([`credential-${reason}`])
        expect(at.had().toString('latin1')).not.toContain(text)
      }
    },
  )

  test.each(ways)('is ended by the secret itself in %s', async (_, say) => {
    await using at = await listening()
    using _lease = await at.lease()
    await sends(at, say(token))
    expect(at.violations).toMatchObject([{ credential: 'api', reason: 'value' }])
    expect(at.had().toString('latin1')).not.toContain(token)
  })

  test.each([
    ['is not masked', Buffer.from([0x81, 1, 65])],
    ['is compressed', Buffer.from([0xc1, 0x81, 0, 0, 0, 0, 65])],
    ['has a reserved opcode', Buffer.from([0x83, 0x81, 0, 0, 0, 0, 65])],
    ['is a fragment of a ping', Buffer.from([0x09, 0x81, 0, 0, 0, 0, 65])],
  ])('is ended by a frame of its client that %s', async (_, bytes) => {
    await using at = await listening()
    using _lease = await at.lease()
    await sends(at, bytes)
    expect(at.log.cut).toEqual(['websocket-frame'])
    expect(at.had()).toHaveLength(0)
  })

  test('passes on what its client says byte for byte, however it comes', async () => {
    const frames = Buffer.concat([
      masked(0x82, Buffer.alloc(70_000, 'abcdefg')),
      masked(0x01, ''),
      masked(0x89, 'ping'),
      masked(0x80, Buffer.alloc(200, otherToken.slice(0, 9))),
    ])
    let had = Buffer.alloc(0)
    await using at = await intercepted({
      injection: websocket,
      raw: agreeing((socket) => socket.on('data', (part: Buffer) => (had = Buffer.concat([had, part])))),
    })
    using _ = await at.lease()
    const socket = await at.raw()
    socket.write(upgrade(at))
    await until(socket, '\r\n\r\n')
    const ends = [1, 2, 3, 7, 9, 12, 30_000, 70_014, 70_015, 70_018, frames.length]
    for (const [index, end] of ends.entries()) socket.write(frames.subarray(ends[index - 1] ?? 0, end))
    await eventually(() => had.length === frames.length)
    expect(had.equals(frames)).toBe(true)
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

  test('that the host declines is looked into where it is packed and does not say so', async () => {
    await using at = await intercepted({
      injection: websocket,
      http: (request, response) => response.end(gzipSync(`you sent ${request.headers.authorization}`)),
    })
    using _ = await at.lease()
    const answer = await talk(await at.raw(), upgrade(at))
    expect(answer).not.toContain('\x1f\x8b')
    expect(at.log.cut).toEqual(['answer-packed'])
  })

  test('that carries the secret asks for the whole', async () => {
    const asked: unknown[] = []
    await using at = await intercepted({
      injection: websocket,
      http(request, response) {
        asked.push(request.headers.range, request.headers['if-range'])
        response.writeHead(401).end()
      },
    })
    using _ = await at.lease()
    await talk(await at.raw(), upgrade(at, 'Range: bytes=0-20', 'If-Range: "x"'))
    expect(asked).toEqual([undefined, undefined])
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

test('a host whose first frame is none, while its client has gone, ends nothing but the connection', async () => {
  const { secrets, placeholder } = await leased()
  const agreed = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
  const wire: Wire = new Wire(() =>
    setImmediate(() => wire.push(Buffer.from(`${agreed}\xff\xff\xff\xff`, 'latin1'))),
  )
  using upstream = new Upstream(wire as unknown as Socket, interceptLimits, () => undefined)
  const head = {
    host: wireHost,
    port: 80,
    isTls: false,
    credentialHeaders: ['authorization'],
    mayUpgrade: true,
    mostHeaders: 200,
  }
  const context = {
    target: { host: wireHost, port: 80 },
    head,
    fillsBodies: false,
    swap: secrets.swap,
    redactor: secrets.redactor,
    limits: interceptLimits,
    upstream: async () => upstream,
    carry: () => undefined,
  }
  const rawHeaders = [
    'Host',
    wireHost,
    'Connection',
    'Upgrade',
    'Upgrade',
    'websocket',
    'Authorization',
    placeholder,
  ]
  const given = { method: 'GET', url: '/', httpVersion: '1.1', rawHeaders } as IncomingMessage
  const client = new Wire().on('error', () => undefined)
  client.destroy()
  const uncaught: unknown[] = []
  const note = (error: unknown): void => void uncaught.push(error)
  process.on('uncaughtException', note)
  try {
    await expect(passUpgrade(context, given, client, Buffer.alloc(0))).rejects.toThrow()
    await turn()
  } finally {
    process.off('uncaughtException', note)
  }
  expect(uncaught).toEqual([])
})

test('a refusal is as long as it says, to the byte', () => {
  const client = new Wire()
  refuseBare(client, new Refusal(502, 'answer', 'the host’s answer'))
  const [, length = '', body = ''] =
    /Content-Length: (\d+)[^]*?\r\n\r\n([^]*)$/.exec(client.written.toString('latin1')) ?? []
  expect(Number(length)).toBe(body.length)
})
