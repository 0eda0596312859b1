import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { headReader } from '../../src/egress/http-head.ts'
import { absoluteTarget } from '../../src/egress/http-request.ts'
import type { Head } from '../../src/egress/http-head.ts'
import { bodyCheck } from '../../src/egress/http-framing.ts'
import { collect, echo, testDoor, upstream } from '../support/egress-door.ts'
import { realHello } from '../support/client-hello.ts'
import { processorMs } from '../support/processor-time.ts'

const here = { 'allowed.com': ['127.0.0.1'] }

test('a request in absolute form gets its answer, in origin form and without what was for the proxy', async () => {
  let seen = ''
  await using server = await upstream((socket) => {
    socket.once('data', (chunk: Buffer) => {
      seen = chunk.toString()
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    })
  })
  const { port } = server
  await using it = await testDoor({ grants: [{ port, tls: false }], names: here })
  const answer = await it.answers(
    [
      `SP1 proxy\nGET http://Allowed.com:${port}/a?b=c HTTP/1.1`,
      `Host: allowed.com:${port}`,
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Connection: keep-alive',
      'Connection: keep-alive, X-Hop',
      'Keep-Alive: timeout=5',
      'X-Hop: secret',
      'TE: trailers',
      'Upgrade: websocket',
      'Accept: */*',
      '\r\n',
    ].join('\r\n'),
  )
  expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*ok$/)
  expect(seen).toBe(
    `GET /a?b=c HTTP/1.1\r\nHost: allowed.com:${port}\r\nAccept: */*\r\nConnection: close\r\n\r\n`,
  )
  expect(await it.told('closed')).toMatchObject({ verdict: 'ended', host: 'allowed.com', port })
})

test('bodies arrive whole, by length and in chunks', async () => {
  const server = createServer((request, response) => void request.pipe(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using it = await testDoor({ grants: [{ port, tls: false }], names: here })
  const head = `SP1 proxy\nPOST http://allowed.com:${port}/ HTTP/1.1\r\nHost: allowed.com:${port}\r\n`
  const body = 'x'.repeat(100_000)
  expect(await it.answers(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)).toContain(
    body.slice(0, 60_000),
  )
  expect(await it.answers(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`)).toMatch(
    /hello/,
  )
  server.close()
})

const port = 7001
const bad: readonly (readonly [title: string, status: number, lines: string])[] = [
  ['CL and TE', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n'],
  ['two lengths', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length: 3\r\nContent-Length: 3\r\n'],
  ['a list of lengths', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length: 3, 3\r\n'],
  ['a signed length', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length: +3\r\n'],
  ['a hexadecimal length', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length: 0x3\r\n'],
  ['two codings', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nTransfer-Encoding: gzip, chunked\r\n'],
  ['a coding by another name', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nTransfer-Encoding: xchunked\r\n'],
  ['a coding with a tab behind it', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nTransfer-Encoding: chunked\t\r\n'],
  ['a length with a tab before it', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nContent-Length:\t3\r\n'],
  ['chunks in HTTP/1.0', 400, 'POST $ HTTP/1.0\r\nHost: @\r\nTransfer-Encoding: chunked\r\n'],
  ['a blank before the colon', 400, 'POST $ HTTP/1.1\r\nHost: @\r\nTransfer-Encoding : chunked\r\n'],
  ['a folded field', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nX: a\r\n b\r\n'],
  ['a folded first field', 400, 'GET $ HTTP/1.1\r\n Host: @\r\n'],
  ['a bare line feed', 400, 'GET $ HTTP/1.1\nHost: @\n'],
  ['a bare line feed in a field', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nX: a\nY: b\r\n'],
  ['a bare carriage return', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nX: a\rY: b\r\n'],
  ['a NUL', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nX: a\0b\r\n'],
  ['an empty line first', 400, '\r\nGET $ HTTP/1.1\r\nHost: @\r\n'],
  ['no Host', 400, 'GET $ HTTP/1.1\r\nAccept: */*\r\n'],
  ['two Hosts', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nHost: @\r\n'],
  ['another Host', 421, 'GET $ HTTP/1.1\r\nHost: evil.net\r\n'],
  ['Host with another port', 421, `GET $ HTTP/1.1\r\nHost: allowed.com:${port + 1}\r\n`],
  ['Host with a user', 421, 'GET $ HTTP/1.1\r\nHost: x@@\r\n'],
  ['Host taken for the connection’s own', 400, 'GET $ HTTP/1.1\r\nHost: @\r\nConnection: host\r\n'],
  [
    'a length taken for the connection’s own',
    400,
    'GET $ HTTP/1.1\r\nHost: @\r\nConnection: Content-Length\r\n',
  ],
  ['TRACE', 405, 'TRACE $ HTTP/1.1\r\nHost: @\r\n'],
  ['TRACK', 405, 'TRACK $ HTTP/1.1\r\nHost: @\r\n'],
  ['a lower-case method', 400, 'get $ HTTP/1.1\r\nHost: @\r\n'],
  ['HTTP/2 by prior knowledge', 400, 'PRI * HTTP/2.0\r\n'],
  ['HTTP/1.2', 400, 'GET $ HTTP/1.2\r\nHost: @\r\n'],
  ['HTTP/0.9', 400, 'GET $\r\n'],
  ['origin form', 400, 'GET / HTTP/1.1\r\nHost: @\r\n'],
  ['another scheme', 400, 'GET https://@/ HTTP/1.1\r\nHost: @\r\n'],
  ['two blanks', 400, 'GET  $ HTTP/1.1\r\nHost: @\r\n'],
  ['a fragment', 400, 'GET $#x HTTP/1.1\r\nHost: @\r\n'],
  ['a field beyond measure', 431, `GET $ HTTP/1.1\r\nHost: @\r\nX: ${'x'.repeat(70_000)}\r\n`],
  ['fields without number', 431, `GET $ HTTP/1.1\r\nHost: @\r\n${'X: y\r\n'.repeat(200)}`],
  ['CONNECT with a body', 400, 'CONNECT @ HTTP/1.1\r\nContent-Length: 3\r\n'],
  ['CONNECT without a port', 400, 'CONNECT allowed.com HTTP/1.1\r\n'],
  ['CONNECT with a URL', 400, 'CONNECT http://@ HTTP/1.1\r\n'],
  ['CONNECT with another Host', 421, 'CONNECT @ HTTP/1.1\r\nHost: evil.net\r\n'],
]

test.each(bad)('%s is answered with %s, and nothing is dialled', async (_title, status, lines) => {
  await using server = await upstream(echo)
  const authority = `allowed.com:${server.port}`
  const head = lines.replaceAll('$', `http://${authority}/`).replaceAll('@', authority)
  await using it = await testDoor({ grants: [{ port: server.port, tls: false }], names: here })
  const { answer, verdict } = await it.refuses(`SP1 proxy\n${head}\r\n`)
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [A-Z]`))
  expect(answer).toMatch(/\r\nConnection: close\r\n\r\nsallyport: [a-z-]+\n$/)
  expect(verdict).toBe('refused')
  expect(server.accepted()).toBe(0)
})

test('group 39: a second request behind the first goes nowhere, whoever it is for', async () => {
  let seen = ''
  await using server = await upstream(
    (socket) => void socket.on('data', (chunk: Buffer) => (seen += chunk.toString())),
  )
  const { port } = server
  await using it = await testDoor({ grants: [{ port, tls: false }], names: here })
  const first = `GET http://allowed.com:${port}/ HTTP/1.1\r\nHost: allowed.com:${port}\r\n`
  const second = 'GET http://evil.net/ HTTP/1.1\r\nHost: evil.net\r\n\r\n'
  await it.answers(`SP1 proxy\n${first}\r\n${second}`)
  expect(await it.told('closed')).toMatchObject({ verdict: 'cut', reason: 'second-request' })
  await it.answers(`SP1 proxy\n${first}Content-Length: 2\r\n\r\nok${second}`)
  expect(await it.told('closed', 2)).toMatchObject({ reason: 'second-request' })
  await it.answers(`SP1 proxy\n${first}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n${second}`)
  expect(await it.told('closed', 3)).toMatchObject({ reason: 'second-request' })
  await it.answers(`SP1 proxy\n${first}Transfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n`)
  expect(await it.told('closed', 4)).toMatchObject({ reason: 'bad-body' })
  expect(seen).not.toContain('evil')
})

test('group 38: what follows a CONNECT to a TLS port is a hello for its target, or is not dialled', async () => {
  await using server = await upstream(echo)
  const { port } = server
  await using it = await testDoor({ grants: [{ port }], names: here, limits: { handshakeMs: 200 } })
  const established = 'HTTP/1.1 200 Connection established\r\n\r\n'
  const connect = Buffer.from(
    `SP1 proxy\nCONNECT allowed.com:${port} HTTP/1.1\r\nHost: allowed.com:${port}\r\n\r\n`,
  )
  const after = (bytes: Uint8Array): Promise<{ answer: string; reason: string | null }> =>
    it.refuses(Buffer.concat([connect, bytes]))
  const plain = Buffer.from('GET / HTTP/1.1\r\nHost: allowed.com\r\n\r\n')
  expect(await after(plain)).toMatchObject({ answer: established, reason: 'no-client-hello' })
  expect(await after(Buffer.from('SSH-2.0-x\r\n'))).toMatchObject({ reason: 'no-client-hello' })
  expect(await after(await realHello('evil.net'))).toMatchObject({ reason: 'sni-mismatch' })
  expect(await after(await realHello())).toMatchObject({ reason: 'sni-missing' })
  expect(await after(Buffer.alloc(0))).toMatchObject({ reason: 'hello-timeout' })
  expect(server.accepted()).toBe(0)
  const hello = await realHello('allowed.com')
  const socket = it.says(Buffer.concat([connect, hello]))
  socket.end()
  expect(await collect(socket)).toBe(established + hello.toString('latin1'))
})

test('CONNECT to a port without TLS is answered once there is a connection, or with why there is none', async () => {
  await using server = await upstream(echo)
  const { port } = server
  const names = { ...here, 'inner.com': ['10.0.0.1'] }
  const grants = [
    { port, tls: false },
    { port: 1, tls: false },
    { host: 'inner.com', port, tls: false, private: false },
  ]
  await using it = await testDoor({ grants, names })
  const socket = it.says(`SP1 proxy\nCONNECT allowed.com:${port} HTTP/1.1\r\n\r\nping`)
  socket.end()
  expect(await collect(socket)).toBe('HTTP/1.1 200 Connection established\r\n\r\nping')
  const refused = async (target: string): Promise<string> =>
    (await it.refuses(`SP1 proxy\nCONNECT ${target} HTTP/1.1\r\n\r\n`)).answer.replace(
      /\r\n[^]*\r\n\r\n/,
      ' ',
    )
  expect(await refused('allowed.com:1')).toBe(
    'HTTP/1.1 502 Bad Gateway (sallyport: connect-failed:econnrefused) sallyport: connect-failed:econnrefused\n',
  )
  expect(await refused(`inner.com:${port}`)).toBe(
    'HTTP/1.1 403 Forbidden (sallyport: address-refused:private) sallyport: address-refused:private\n',
  )
  expect(await refused(`evil.net:${port}`)).toBe(
    'HTTP/1.1 403 Forbidden (sallyport: name-not-listed) sallyport: name-not-listed\n',
  )
  expect(await refused('allowed.com:2')).toBe(
    'HTTP/1.1 403 Forbidden (sallyport: port-not-listed) sallyport: port-not-listed\n',
  )
})

test('plain HTTP does not go to a TLS port, and a head that never ends has a deadline', async () => {
  await using server = await upstream(echo)
  const { port } = server
  await using it = await testDoor({ grants: [{ port }], names: here, limits: { handshakeMs: 200 } })
  const request = `SP1 proxy\nGET http://allowed.com:${port}/ HTTP/1.1\r\nHost: allowed.com:${port}\r\n`
  expect(await it.refuses(`${request}\r\n`)).toMatchObject({ reason: 'no-client-hello' })
  expect(await it.refuses(request)).toMatchObject({ reason: 'head-timeout' })
  expect(server.accepted()).toBe(0)
})

test('a head is read the same wherever segments cut it', () => {
  const whole = Buffer.from('POST /a HTTP/1.1\r\nHost: allowed.com\r\nContent-Length: 3\r\n\r\nabc')
  for (let at = 1; at < whole.length; at++) {
    const read = headReader()
    let found: Head | undefined
    let left = ''
    for (const piece of [whole.subarray(0, at), whole.subarray(at)]) {
      const it = found === undefined ? read(piece) : null
      found ??= it?.value
      if (found !== undefined) left += piece.toString('latin1', it?.used ?? 0)
    }
    expect(found?.fields).toEqual([
      ['Host', 'allowed.com'],
      ['Content-Length', '3'],
    ])
    expect(left).toBe('abc')
  }
})

describe('no head takes long, whatever is in it', () => {
  const read = (fields: string): Head | undefined =>
    headReader()(Buffer.from(`GET / HTTP/1.1\r\n${fields}\r\n\r\n`, 'latin1'))?.value
  const blanks = ' '.repeat(60_000)

  test('nor is a bare return taken', () => {
    expect(processorMs(() => expect(() => read(`A:${blanks}\rx`)).toThrow('bad-request'))).toBeLessThan(1000)
  })

  test('blanks around and in values', () => {
    const took = processorMs(() => {
      expect(read(`A:x${blanks}x`)?.fields).toEqual([['A', `x${blanks}x`]])
      expect(read(`A:${blanks}x\t${blanks.slice(0, 3000)}`)?.fields).toEqual([['A', 'x']])
      expect(read(`A:${blanks}`)?.fields).toEqual([['A', '']])
    })
    expect(took).toBeLessThan(1000)
  })

  test('addresses', () => {
    const head = (target: string): Head => ({ method: 'GET', target, version: '1.1', fields: [] })
    const took = processorMs(() =>
      expect(() => absoluteTarget(head(`http://${'a'.repeat(60_000)}#`))).toThrow('bad-request'),
    )
    expect(took).toBeLessThan(1000)
    expect(absoluteTarget(head('http://a.example?x=/y'))).toMatchObject({ host: 'a.example' })
    expect(() => absoluteTarget(head('http://a.example/#x'))).toThrow('bad-request')
  })

  test('byte by byte', () => {
    const reader = headReader()
    const bytes = Buffer.from(`GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(90)}C: ${'d'.repeat(60_000)}\r\n\r\n`)
    let found: Head | undefined
    const took = processorMs(() => {
      for (let at = 0; at < bytes.length; at++) found ??= reader(bytes.subarray(at, at + 1))?.value
    })
    expect(found?.fields).toHaveLength(91)
    expect(took).toBeLessThan(1000)
  })
})

test('a chunked body ends in the same place wherever it is cut, and not a byte later', () => {
  const body = fc
    .array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 5 })
    .map((chunks) =>
      Buffer.concat([
        ...chunks.flatMap((it) => [
          Buffer.from(`${it.length.toString(16)}\r\n`),
          Buffer.from(it),
          Buffer.from('\r\n'),
        ]),
        Buffer.from('0\r\n\r\n'),
      ]),
    )
  fc.assert(
    fc.property(body, fc.nat(), (it, cut) => {
      const check = bodyCheck({ kind: 'chunked' }, () => null)
      const at = cut % (it.length + 1)
      expect([check(it.subarray(0, at)), check(it.subarray(at))]).toEqual([null, null])
      expect(check(Uint8Array.of(0))).toBe('second-request')
    }),
  )
})

test('whatever bytes come as a request, the door answers 4xx or nothing, and dials nobody but the target', async () => {
  await using server = await upstream((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  await using it = await testDoor({
    grants: [{ port: server.port, tls: false }],
    names: here,
    limits: { handshakeMs: 50 },
  })
  const request = `GET http://allowed.com:${server.port}/ HTTP/1.1\r\nHost: allowed.com:${server.port}\r\n\r\n`
  const mutated = fc.array(fc.tuple(fc.nat(request.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(mutated, async (changes) => {
      const bytes = Buffer.from(request)
      for (const [at, byte] of changes) bytes[at] = byte
      expect(await it.answers(Buffer.concat([Buffer.from('SP1 proxy\n'), bytes]))).toMatch(
        /^(HTTP\/1.1 [245]\d\d |$)/,
      )
    }),
    { numRuns: 400, interruptAfterTimeLimit: 8000 },
  )
  for (const { host, port, kind } of it.events)
    if (kind === 'opened') expect([host, port]).toEqual(['allowed.com', server.port])
})
