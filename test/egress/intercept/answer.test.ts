// What a hostile host answers: the secret that it was sent never comes back, and its answer has one meaning only.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  brotliCompressSync,
  constants,
  createGzip,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import { expect, test } from 'vitest'
import { createRedactor } from '../../../src/credentials/redactor.ts'
import { KnownValues } from '../../../src/credentials/values.ts'
import { eventually } from '../../support/eventually.ts'
import { intercepted, talk, token, until } from '../../support/intercepted.ts'

type Answer = (response: ServerResponse, secret: string, request: IncomingMessage) => void

/** Asks a host that reflects the secret in its own way, and gives all that came back. */
async function ask(answer: Answer, more: readonly string[] = [], method = 'GET') {
  const at = await intercepted({
    http: (request, response) =>
      answer(response, request.headers.authorization?.replace('Bearer ', '') ?? '', request),
  })
  const lease = await at.lease()
  const said = await at.say(
    [
      `${method} / HTTP/1.1`,
      `Host: ${at.authority}`,
      `Authorization: Bearer ${at.placeholder}`,
      'Connection: close',
      ...more,
      '',
      '',
    ].join('\r\n'),
  )
  const { cut } = at.log
  lease.end()
  await at[Symbol.asyncDispose]()
  return { said, cut, body: said.split('\r\n\r\n').slice(1).join('\r\n\r\n') }
}

const values = new KnownValues()
values.add('api', Buffer.from(token))
const inside = (text: string): readonly string[] =>
  createRedactor(values.scanner).redact(Buffer.from(text, 'latin1').toString()).found

/** Undoes chunks, so that what lay across their borders lies together. */
const joined = (body: string): string => {
  let [rest, whole] = [body, '']
  for (;;) {
    const [, size = '', after = ''] = /^([0-9a-f]+)\r\n([^]*)$/.exec(rest) ?? []
    const length = Number.parseInt(size, 16)
    if (!(length > 0)) return size === '' ? whole + rest : whole
    whole += after.slice(0, length)
    rest = after.slice(length + 2)
  }
}

const json = (secret: string): string => JSON.stringify({ a: secret, b: `Basic ${btoa(`u:${secret}`)}` })

/** Answers piece by piece, most of which come apart. */
const slowly = async (response: ServerResponse, bytes: Buffer, size: number): Promise<void> => {
  for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
    response.write(bytes.subarray(at, at + size))
    await setImmediate()
  }
  response.end()
}

/** The codings that are known by how they begin, and as much as a client that is patient gets out of what was broken off. */
const packings: Readonly<Record<string, readonly [(text: string) => Buffer, (bytes: Buffer) => Buffer]>> = {
  gzip: [gzipSync, (bytes) => gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })],
  zlib: [deflateSync, (bytes) => inflateSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })],
  'zlib of a small window': [
    (text) => deflateSync(text, { windowBits: 9, level: 1 }),
    (bytes) => inflateSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }),
  ],
  zstd: [zstdCompressSync, (bytes) => zstdDecompressSync(bytes, { finishFlush: constants.ZSTD_e_flush })],
}
const unpacked = (body: string, coding = 'gzip'): string =>
  packings[coding]?.[1](Buffer.from(body, 'latin1')).toString('latin1') ?? ''

test('the host had it, so that a test that finds nothing has looked', async () => {
  const had: string[] = []
  await ask((response, secret) => {
    had.push(secret)
    response.end()
  })
  expect(had).toEqual([token])
})

test.each<readonly [string, Answer]>([
  ['a body with a length', (response, secret) => response.end(`<${json(secret)}>`)],
  [
    'a body in chunks of one byte',
    (response, secret) => {
      for (const byte of Buffer.from(json(secret))) response.write(Buffer.from([byte]))
      response.end()
    },
  ],
  ['a header', (response, secret) => response.setHeader('X-Echo', `you said ${secret}`).end('ok')],
  [
    'Set-Cookie',
    (response, secret) => response.setHeader('Set-Cookie', `k=${encodeURIComponent(secret)}`).end('ok'),
  ],
  [
    'the name of a header',
    (response, secret) => response.setHeader(`X-${Buffer.from(secret).toString('hex')}`, '1').end(),
  ],
  [
    'the reason phrase',
    (response, secret) => {
      response.statusMessage = `Sorry ${secret}`
      response.statusCode = 401
      response.end('no')
    },
  ],
  [
    'a trailer',
    (response, secret) => {
      response.setHeader('Trailer', 'X-T')
      response.write('body')
      response.addTrailers({ 'X-T': secret })
      response.end()
    },
  ],
  [
    'a redirect',
    (response, secret) =>
      response.writeHead(302, { Location: `https://evil.test/?${encodeURIComponent(secret)}` }).end(),
  ],
  [
    'a body that is compressed',
    (response, secret) => response.setHeader('Content-Encoding', 'gzip').end(gzipSync(json(secret))),
  ],
  [
    'a body in deflate',
    (response, secret) => response.setHeader('Content-Encoding', 'deflate').end(deflateSync(json(secret))),
  ],
  [
    'a body in brotli',
    (response, secret) => response.setHeader('Content-Encoding', 'br').end(brotliCompressSync(json(secret))),
  ],
  [
    'a body in zstd',
    (response, secret) => response.setHeader('Content-Encoding', 'zstd').end(zstdCompressSync(json(secret))),
  ],
  [
    'early hints',
    (response, secret) => {
      response.writeEarlyHints({ link: `</${encodeURIComponent(secret)}>; rel=preload` })
      response.end('ok')
    },
  ],
])('a secret reflected in %s is masked', async (_, answer) => {
  const { said, body } = await ask(answer)
  expect(said).toMatch(/^HTTP\/1\.1 [234]\d\d/)
  expect(inside(said)).toEqual([])
  expect(inside(joined(body))).toEqual([])
  expect(said.length).toBeGreaterThan(30)
})

test('what is around the secret is passed on whole, and its length stays true', async () => {
  const { said, body } = await ask((response, secret) => response.end(`before ${secret} after`))
  expect(body).toBe(`before ${'*'.repeat(token.length)} after`)
  expect(said).toContain(`Content-Length: ${body.length}\r\n`)
})

test.each(['gzip', 'deflate', 'br', 'zstd'])('%s is undone, and said no more', async (coding) => {
  const press = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }[
    coding
  ]
  const text = 'a text '.repeat(1000)
  const { said, body } = await ask((response) =>
    response.setHeader('Content-Encoding', coding).end(press?.(Buffer.from(text))),
  )
  expect(said).not.toMatch(/content-encoding/i)
  expect(joined(body)).toBe(text)
})

test.each(['compress', 'gzip, br', 'unknown'])(
  'an answer in %s can’t be read, and is refused',
  async (coding) => {
    const { said } = await ask((response, secret) =>
      response.setHeader('Content-Encoding', coding).end(gzipSync(secret)),
    )
    expect(said).toMatch(/^HTTP\/1\.1 502 /)
    expect(said).toContain('compressed')
  },
)

test.each(Object.keys(packings).flatMap((coding) => [1, 7, 4096].map((size) => [coding, size] as const)))(
  '%s that says so nowhere is broken off where it has the secret, in pieces of %i',
  async (coding, size) => {
    const { body, cut } = await ask((response, secret) => {
      // Text, since what can't be made shorter stands in it as it is
      const text = (): string => randomBytes(size * 25).toString('hex')
      const packed = packings[coding]?.[0](text() + json(secret) + text()) ?? Buffer.alloc(0)
      void slowly(response, packed, size)
    })
    expect(cut).toContain('answer-packed')
    const got = unpacked(joined(body), coding)
    expect(inside(got)).toEqual([])
    // Nor all of it but its last letters, which were in a later piece
    expect(got).not.toContain(token.slice(0, 4))
  },
)

test('what gzip without a name holds back for what may become a secret comes with the rest, or at its end', async () => {
  const text = `${token.slice(0, -1)}! and ${token.slice(0, -1)}`
  const sent = gzipSync(text)
  const { body } = await ask((response) => void slowly(response, sent, 1))
  expect(unpacked(joined(body))).toBe(text)
})

test('gzip that waits without end for the rest of what may be a secret is broken off', async () => {
  const gzip = createGzip()
  const begun: Buffer[] = []
  gzip.on('data', (bytes: Buffer) => begun.push(bytes)).write(token.slice(0, -1))
  await new Promise<void>((resolve) => gzip.flush(constants.Z_SYNC_FLUSH, resolve))
  const stored = Buffer.of(0, 0, 0, 0xff, 0xff)
  const { cut, body } = await ask((response) => {
    response.write(Buffer.concat(begun))
    response.end(Buffer.concat(Array.from({ length: 400_000 }, () => stored)))
  })
  expect(cut).toContain('answer-packed')
  expect(unpacked(joined(body))).not.toContain(token.slice(0, 4))
})

test.each([1, 4096])(
  'what says nowhere that it is compressed, and bytes that begin like it, pass as they are, in pieces of %i',
  async (size) => {
    for (const sent of [
      gzipSync(randomBytes(500)),
      deflateSync(randomBytes(500)),
      zstdCompressSync(randomBytes(500)),
      Buffer.from('x'),
      Buffer.from('x^2 + y^2'),
      Buffer.of(0x28, 0xb5, 0x2f, 0x20),
      Buffer.of(0x1f, 0x8b),
      Buffer.from('1f8b'),
      Buffer.from([0x1f, 0x8b, 8, 1, 2, 3, 4]),
    ]) {
      const { body } = await ask((response) => {
        for (let at = 0; at < sent.length; at += size) response.write(sent.subarray(at, at + size))
        response.end()
      })
      expect(Buffer.from(joined(body), 'latin1')).toEqual(sent)
    }
  },
)

test('an answer that claims gzip and is none is broken off', async () => {
  const { said } = await ask((response, secret) =>
    response.setHeader('Content-Encoding', 'gzip').end(`plain ${secret}`),
  )
  expect(inside(said)).toEqual([])
  expect(said).not.toMatch(/0\r\n\r\n$/)
})

test('a redirect is passed on as it is, and nobody follows it', async () => {
  const { said } = await ask((response) =>
    response.writeHead(307, { Location: 'https://evil.test/next' }).end(),
  )
  expect(said).toMatch(/^HTTP\/1\.1 307 /)
  expect(said).toContain('Location: https://evil.test/next')
})

test('cookies of the host are the client’s, each of them', async () => {
  const { said } = await ask((response) => response.setHeader('Set-Cookie', ['a=1', 'b=2']).end())
  expect(said.match(/Set-Cookie: .*/g)).toHaveLength(2)
})

test.each([
  ['HEAD', 'HEAD', (response: ServerResponse) => response.setHeader('Content-Length', 500).end()],
  ['204', 'GET', (response: ServerResponse) => response.writeHead(204).end()],
  [
    '304',
    'GET',
    (response: ServerResponse) => response.writeHead(304, { ETag: '"x"', 'Content-Encoding': 'odd' }).end(),
  ],
])('an answer to %s ends with its head', async (_, method, answer) => {
  const { said, body } = await ask(answer, [], method)
  expect(said).toMatch(/^HTTP\/1\.1 (200|204|304) /)
  expect(body).toBe('')
})

test.each(['O\x01K', 'O\x7fK', '\0', '\x1b[2J'])(
  'a host whose first line has a letter that none may have (%j) is refused, and nothing but its connection ends',
  async (reason) => {
    await using at = await intercepted({
      raw: (socket) =>
        socket.once('data', () => socket.end(`HTTP/1.1 200 ${reason}\r\nContent-Length: 0\r\n\r\n`)),
    })
    using _ = await at.lease()
    const said = await at.say(
      `GET / HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`,
    )
    expect(said).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n[^]*in its first line/)
    expect(at.log.cut).toEqual(['answer-status'])
    await eventually(() => at.served.size === 0)
  },
)

test('trailers of the host are passed on', async () => {
  const { body } = await ask((response) => {
    response.setHeader('Trailer', 'X-Sum')
    response.write('body')
    response.addTrailers({ 'X-Sum': '42' })
    response.end()
  })
  expect(body).toContain('0\r\nX-Sum: 42\r\n\r\n')
})

/** Asks a host that says what it likes, byte for byte. */
async function askRaw(answer: string | Buffer, isEnd = true) {
  const at = await intercepted({
    raw: (socket) => {
      socket.once('data', () => {
        socket.write(answer)
        if (isEnd) socket.end()
      })
    },
  })
  const said = await at.say(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\nConnection: close\r\n\r\n`)
  await at[Symbol.asyncDispose]()
  return said
}

test.each([
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['CL with TE', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['another coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'],
  ['a folded line', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n'],
  ['NUL in a header', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
  ['bare LFs', 'HTTP/1.1 200 OK\nX: a\n\n'],
  ['no HTTP', 'SSH-2.0-OpenSSH_9\r\n'],
  ['HTTP/2', Buffer.from('0000000400000000000000', 'hex')],
  ['an upgrade that nobody asked for', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
  ['a head of 70 kB', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`],
  ['too many headers', `HTTP/1.1 200 OK\r\n${'X: a\r\n'.repeat(250)}\r\n`],
  ['nothing', ''],
])('an answer with %s is refused', async (_, answer) => {
  expect(await askRaw(answer)).toMatch(/^HTTP\/1\.1 502 /)
})

test('an answer without a length ends with the connection, and one that is cut short is not completed', async () => {
  expect(
    joined((await askRaw('HTTP/1.0 200 OK\r\n\r\nall of it')).split('\r\n\r\n').slice(1).join('\r\n\r\n')),
  ).toBe('all of it')
  expect(await askRaw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc')).not.toMatch(
    /0\r\n\r\n$/,
  )
  expect(await askRaw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')).not.toContain('abc'.padEnd(10))
})

test('a second answer to one request is never taken for the answer to the next', async () => {
  let asked = 0
  await using at = await intercepted({
    raw: (socket) => {
      const answer = (text: string): string =>
        `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`
      socket.on('data', () => {
        asked++
        socket.write(answer('mine') + answer('poison'))
      })
    },
  })
  const get = `GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`
  const socket = await at.raw()
  const all = await talk(socket, get + get)
  expect(all).not.toContain('poison')
  expect(asked).toBe(1)
})

test('a host that speaks between two requests has its connection ended', async () => {
  await using at = await intercepted({
    raw: (socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'), 50)
      })
    },
  })
  const socket = await at.raw()
  socket.write(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`)
  await until(socket, 'ok')
  await eventually(() => socket.readableEnded || socket.destroyed || at.clients.size === 0)
  expect(at.upstreams.size).toBe(0)
})

test('a host that answers before it has the body ends the connection after its answer', async () => {
  await using at = await intercepted({
    http: (_, response) => response.writeHead(413).end('too much'),
  })
  const socket = await at.raw()
  const head = `POST / HTTP/1.1\r\nHost: ${at.authority}\r\nContent-Length: 1000000\r\n\r\n`
  const all = await talk(socket, head + 'x'.repeat(1000))
  expect(all).toMatch(/^HTTP\/1\.1 413 /)
  expect(all).toContain('Connection: close')
})
