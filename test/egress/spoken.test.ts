// A port that says nothing of its protocol: what names a host on it is held to the one that was judged, the rest passes.
import { expect, test } from 'vitest'
import { spokenCheck } from '../../src/egress/spoken.ts'
import { realHello } from '../support/client-hello.ts'
import { echo, testDoor, upstream } from '../support/egress-door.ts'

const target = { host: 'allowed.com', port: 8080 }
const lines = (...text: readonly string[]): string => [...text, '', ''].join('\r\n')
const fine = lines('GET / HTTP/1.1', 'Host: allowed.com:8080')
const evil = lines('GET / HTTP/1.1', 'Host: evil.net')

/** What is said of the bytes, as they come whole, and cut at every byte. */
function saidOf(bytes: Uint8Array | string): string | null {
  const all = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : Buffer.from(bytes)
  const whole = spokenCheck(target, () => null)(all)
  for (let at = 1; at < all.length; at++) {
    const check = spokenCheck(target, () => null)
    expect(check(all.subarray(0, at)) ?? check(all.subarray(at))).toBe(whole)
  }
  const check = spokenCheck(target, () => null)
  const said = [...all].map((byte) => check(Buffer.from([byte]))).find((it) => it !== null) ?? null
  expect(said).toBe(whole)
  return whole
}

test.each<readonly [string, string]>([
  ['a request for the target', fine],
  ['one without its port', lines('GET / HTTP/1.1', 'Host: ALLOWED.com.')],
  ['one in absolute form', lines('GET http://allowed.com:8080/x HTTP/1.1', 'Host: allowed.com:8080')],
  ['several behind each other', fine + fine],
  [
    'one with a body that looks like another',
    lines('POST / HTTP/1.1', 'Host: allowed.com:8080', `Content-Length: ${evil.length}`) + evil + fine,
  ],
  [
    'one in chunks',
    `${lines('POST / HTTP/1.1', 'Host: allowed.com', 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n${fine}`,
  ],
  [
    'a websocket, and frames behind it',
    `${lines('GET / HTTP/1.1', 'Host: allowed.com', 'Connection: Upgrade', 'Upgrade: websocket')}\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\n${evil}`,
  ],
  ['HTTP/2 by prior knowledge', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${evil}`],
  ['a long line that names no version', `${'x'.repeat(70_000)}\n`],
  ['a line of a log', '10.0.0.1 - - "GET / HTTP/1.1" 200 12\n'],
  ['a record of a log', `\x93\xa3app\xce\x00\x00\x00\x01\x81\xa3log\xafGET / HTTP/1.1\n`],
  ['a line of JSON', '{"log":"GET / HTTP/1.1"}\n'],
  ['a query', "\x00\x00\x00\x08\x00\x03\x00\x00Q\x00\x00\x00\x20SELECT 'GET / HTTP/1.1'"],
  ['a command of redis', '*1\r\n$4\r\nPING\r\n'],
  ['a command of memcached', 'get host\r\n'],
  ['a greeting of SMTP', 'EHLO here\r\nMAIL FROM:<a@b>\r\n'],
  ['a line that never ends', 'GET / HTTP/1.1 Host: evil.net '.repeat(10)],
  ['bytes', '\x00\x00\x00\x08\x04\xd2\x16\x2f'],
  ['RTSP', lines('OPTIONS rtsp://evil.net/ RTSP/1.0', 'CSeq: 1')],
])('%s passes', (_, bytes) => {
  expect(saidOf(Buffer.from(bytes, 'latin1'))).toBe(null)
})

test.each<readonly [string, string, string]>([
  ['a request for another host', evil, 'host-mismatch'],
  ['one for another port', lines('GET / HTTP/1.1', 'Host: allowed.com:80'), 'host-mismatch'],
  ['one behind empty lines', `\r\n\n\r\n${evil}`, 'host-mismatch'],
  [
    'another host in its absolute form',
    lines('GET http://evil.net/ HTTP/1.1', 'Host: allowed.com'),
    'host-mismatch',
  ],
  ['a second one for another host', fine + evil, 'host-mismatch'],
  ['two hosts', lines('GET / HTTP/1.1', 'Host: allowed.com', 'Host: evil.net'), 'bad-request'],
  ['no host', lines('GET / HTTP/1.1', 'Accept: x'), 'bad-request'],
  ['a letter in its target that is none', lines('GET /?\x01 HTTP/1.1', 'Host: evil.net'), 'bad-request'],
  ['other spaces', lines('GET\x0b/\x0bHTTP/1.1', 'Host: evil.net'), 'bad-request'],
  ['other spaces before it', lines('\x1cGET / HTTP/1.1', 'Host: evil.net'), 'bad-request'],
  ['a letter behind its version', lines('GET / HTTP/1.1\x1c', 'Host: evil.net'), 'bad-request'],
  ['two returns', lines('GET / HTTP/1.1\r', 'Host: evil.net'), 'bad-request'],
  ['one behind returns', `\r\r\n${evil}`, 'host-mismatch'],
  ['one behind empty lines and returns', `\r\n\r\r\n\r\r\r\n${evil}`, 'host-mismatch'],
  ['returns alone', 'GET / HTTP/1.1\rHost: evil.net\r\r', 'bad-request'],
  ['another version', lines('GET / HTTP/2.0', 'Host: evil.net'), 'bad-request'],
  [
    'one behind the body of an upgrade',
    lines('POST / HTTP/1.1', 'Host: allowed.com', 'Connection: Upgrade', 'Upgrade: x', 'Content-Length: 1') +
      `\x00${evil}`,
    'host-mismatch',
  ],
  [
    'one behind an upgrade, and other spaces before it',
    `${lines('GET / HTTP/1.1', 'Host: allowed.com', 'Connection: Upgrade', 'Upgrade: x')}\x0b${evil}`,
    'bad-request',
  ],
  ['a method of its own', lines('FRONT / HTTP/1.1', 'Host: evil.net'), 'host-mismatch'],
  ['small letters', lines('get / http/1.1', 'host: evil.net'), 'bad-request'],
  ['bare line feeds', 'GET / HTTP/1.1\nHost: evil.net\n\n', 'bad-request'],
  ['a blank before it', ` ${evil}`, 'bad-request'],
  ['CONNECT', lines('CONNECT evil.net:443 HTTP/1.1', 'Host: evil.net:443'), 'method-refused'],
  ['TRACE', lines('TRACE / HTTP/1.1', 'Host: allowed.com'), 'method-refused'],
  [
    'a body of two lengths',
    lines('POST / HTTP/1.1', 'Host: allowed.com', 'Content-Length: 3', 'Transfer-Encoding: chunked') + evil,
    'bad-request',
  ],
  [
    'one behind an upgrade that was not agreed on',
    lines('GET / HTTP/1.1', 'Host: allowed.com', 'Connection: Upgrade', 'Upgrade: websocket') + evil,
    'host-mismatch',
  ],
])('%s is refused before its head is whole', (_, bytes, reason) => {
  expect(saidOf(bytes)).toBe(reason)
})

test('a line longer than a head may be is looked at to its end', () => {
  const check = spokenCheck(target, () => null)
  expect(check(Buffer.from(`GET /${'x'.repeat(70_000)}`))).toBe(null)
  expect(check(Buffer.from(' HTT'))).toBe(null)
  expect(check(Buffer.from('P/1.1\r\n'))).toBe('bad-request')
})

test('TLS names the target, and nothing else', async () => {
  expect(saidOf(await realHello('allowed.com'))).toBe(null)
  expect(saidOf(await realHello('evil.net'))).toBe('sni-mismatch')
  expect(saidOf(await realHello())).toBe('sni-missing')
})

test('at the door, a connection that turns to another host is cut before that arrives', async () => {
  let seen = ''
  await using server = await upstream((socket) => socket.on('data', (it: Buffer) => (seen += it.toString())))
  await using it = await testDoor({
    grants: [{ port: server.port, tls: false }],
    names: { 'allowed.com': ['127.0.0.1'] },
  })
  const host = `allowed.com:${server.port}`
  const first = lines('GET /one HTTP/1.1', `Host: ${host}`)
  const socket = it.says(`SP1 connect allowed.com ${server.port}\n${first}`)
  await it.told('opened')
  socket.write(lines('GET /two HTTP/1.1', 'Host: evil.net'))
  expect(await it.told('closed')).toMatchObject({ verdict: 'cut', reason: 'host-mismatch' })
  expect(seen).not.toContain('/two')
})

test('at the door, what is neither passes untouched', async () => {
  await using server = await upstream(echo)
  await using it = await testDoor({
    grants: [{ port: server.port, tls: false }],
    names: { 'allowed.com': ['127.0.0.1'] },
  })
  const socket = it.says(`SP1 connect allowed.com ${server.port}\nget host\r\n`)
  const answer = new Promise((resolve) => socket.once('data', (bytes: Buffer) => resolve(bytes.toString())))
  expect(await answer).toBe('get host\r\n')
  socket.destroy()
})
