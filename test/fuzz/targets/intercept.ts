// Connections that carry a credential: what a client says goes up as one request to every parser and with the secret where the entry has
// it alone; what a host answers, and either says over a websocket, comes through with no secret in it.
import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import { createServer } from 'node:http'
import type { Transform } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import { redactingFrames, watchedFrames } from '../../../src/egress/intercept/frames.ts'
import { host, leased, otherSecret, overWire, secret, Wire } from '../../support/intercepted-wire.ts'
import { type Heard, hear } from '../hear.ts'
import type { Target } from '../target.ts'

let laid: ReturnType<typeof leased> | undefined
const way = (): ReturnType<typeof leased> => (laid ??= leased())

/** Words of inputs for what is drawn anew each time. */
const filled = (
  bytes: Uint8Array,
  { placeholder, otherPlaceholder }: Awaited<ReturnType<typeof leased>>,
): Buffer =>
  Buffer.from(
    Buffer.from(bytes)
      .toString('latin1')
      .replaceAll('{P}', placeholder)
      .replaceAll('{O}', otherPlaceholder)
      .replaceAll('{S}', secret),
    'latin1',
  )

const holds = (bytes: Uint8Array | string, word: string): boolean =>
  (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('latin1')).includes(word)

/** A host that answers each request that it can read. */
const answering = (): Wire => {
  const inner = new Wire((piece) => wire.push(piece))
  const wire: Wire = new Wire((piece) => inner.push(piece))
  createServer((request, response) => request.resume().on('end', () => response.end('ok'))).emit(
    'connection',
    inner,
  )
  return wire
}

const places = ['authorization', 'content-length']

function expectAllowed({ method, url, fields, body }: Heard, placeholders: readonly string[]): void {
  const pairs = fields.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), fields[at + 1] ?? '']] : [],
  )
  const of = (name: string): readonly string[] =>
    pairs.filter(([it]) => it === name).map(([, value]) => value ?? '')
  deepStrictEqual(of('host'), [host])
  for (const name of places) ok(of(name).length <= 1, `${name} goes up twice`)
  const beside = [
    method,
    url?.split('?')[0],
    ...pairs.filter(([name]) => name !== 'authorization').flat(),
  ].join('\n')
  ok(!holds(beside, secret), 'the secret goes up where the entry does not have it')
  for (const word of [...placeholders, otherSecret])
    ok(
      !holds([beside, ...of('authorization'), url, body].join('\n'), word),
      'what stands for a secret goes up',
    )
}

/** A client in full: heads, bodies and their ends. */
export const intercepted: Target = {
  name: 'intercepted',
  seeds: [
    'GET /a?b={P} HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer {P}\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a":"{P}',
    'POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{P}\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: A.test.:80\r\n\r\n',
    'GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nX: {P}\r\n\r\n',
    'PUT / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 2\r\nAuthorization: Basic e1B9\r\n\r\nok',
    'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  ],
  words: [
    '{P}',
    '{O}',
    '{S}',
    '\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    '\0',
    '0\r\n\r\n',
    '3;x=y\r\n',
    'Content-Length: 3\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer_Encoding: chunked\r\n',
    'Host: a.test\r\n',
    'Host: b.test\r\n',
    'Authorization: {P}\r\n',
    'Authorization : {P}\r\n',
    'Connection: close, authorization\r\n',
    'Content-Encoding: gzip\r\n',
    'Trailer: X\r\n',
    'Range: bytes=0-1\r\n',
    'Expect: 100-continue\r\n',
    'Upgrade: websocket\r\n',
    ' HTTP/1.0',
    ' HTTP/1.1',
    'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n',
    '@a.test',
    'http://a.test',
    'TRACE',
    'OPTIONS *',
    'HEAD',
  ],
  async run(bytes) {
    const at = await way()
    const { toHost } = await overWire(at, filled(bytes, at), answering)
    const [strict, lax] = [await hear(toHost, false), await hear(toHost, true)]
    deepStrictEqual(strict, lax)
    ok(!strict.isRefused, 'what goes up can’t be read')
    for (const one of strict.heard) expectAllowed(one, [at.placeholder, at.otherPlaceholder])
  },
}

const asked = 'GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer {P}\r\n\r\n'

/** What a host says to a request that carries the secret. */
export const answered: Target = {
  name: 'answered',
  seeds: [
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: {S}\r\n\r\n{S}',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{S}\r\n0\r\nX: {S}\r\n\r\n',
    'HTTP/1.1 401 {S}\r\nWWW-Authenticate: Basic\r\nConnection: close\r\n\r\nno {S}',
    Buffer.concat([
      Buffer.from('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n'),
      Buffer.from('H4sIAAAAAAAAA0vMSVXISy0HABr1nHMHAAAA', 'base64'),
    ]),
    'HTTP/1.0 204 No\r\n\r\n',
    'HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  ],
  words: [
    '{S}',
    'tok_"odd/+%sec',
    'tok_\\"odd\\/+%secret~0123456789',
    'tok_%22odd%2F%2B%25secret~0123456789',
    '\r\n',
    '\r\n\r\n',
    '\n',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 103 Early Hints\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    'Content-Length: 3\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Content-Encoding: gzip\r\n',
    'Content-Encoding: deflate\r\n',
    'Connection: close\r\n',
    'Set-Cookie: {S}\r\n',
    '\x1f\x8b\x08',
    '\x78\x9c',
    '0\r\n\r\n',
    '{P}',
  ],
  async run(bytes) {
    const at = await way()
    const answer = filled(bytes, at)
    const hosting = (): Wire => {
      let isAsked = false
      const wire: Wire = new Wire(() => {
        if (!isAsked) setImmediate(() => [answer, null].forEach((piece) => wire.push(piece)))
        isAsked = true
      })
      return wire
    }
    const { toHost, toClient } = await overWire(at, filled(Buffer.from(asked), at), hosting)
    ok(holds(toHost, `Bearer ${secret}`), 'the request did not go up')
    ok(!holds(toClient, secret), 'the secret comes down')
    const packed = toClient.indexOf('\x1f\x8b\x08', 0, 'latin1')
    if (packed >= 0) ok(!holds(unpacked(toClient.subarray(packed)), secret), 'the secret comes down in gzip')
  },
}

const unpacked = (bytes: Buffer): Buffer => {
  try {
    return gunzipSync(bytes)
  } catch {
    return bytes
  }
}

/** What comes out of a step that is given these pieces; null where it refuses them. */
async function through(step: Transform, pieces: readonly Buffer[]): Promise<Buffer | null> {
  const out: Buffer[] = []
  let isRefused = false
  step.on('data', (piece: Buffer) => out.push(piece)).on('error', () => (isRefused = true))
  const closed = new Promise((resolve) => step.once('close', resolve))
  for (const piece of pieces) step.write(piece)
  step.end()
  await closed
  return isRefused ? null : Buffer.concat(out)
}

/** The messages that whole frames carry, fragments put together, and control frames among them as they come. */
function messagesIn(frames: Buffer): readonly string[] {
  const messages: string[] = []
  let begun = ''
  for (let at = 0; at + 2 <= frames.length;) {
    const [first = 0, second = 0] = frames.subarray(at)
    const size = { 126: 4, 127: 10 }[second & 0x7f] ?? 2
    const masked = (second & 0x80) === 0 ? 0 : 4
    if (at + size + masked > frames.length) break
    const length =
      size === 2
        ? second & 0x7f
        : size === 4
          ? frames.readUInt16BE(at + 2)
          : Number(frames.readBigUInt64BE(at + 2))
    const mask = frames.subarray(at + size, at + size + masked)
    const from = at + size + masked
    const payload = Buffer.from(
      frames.subarray(from, from + length).map((byte, n) => byte ^ (mask[n & 3] ?? 0)),
    )
    at = from + length
    if ((first & 0x0f) >= 8) messages.push(`${first & 0x0f}:${payload.toString('latin1')}`)
    else begun += payload.toString('latin1')
    if ((first & 0x0f) < 8 && (first & 0x80) !== 0) {
      messages.push(begun)
      begun = ''
    }
  }
  return [...messages, begun]
}

/** A message of a client, with a mask that changes it. */
const masked = (text: string): string => {
  const mask = '\x01\x02\x03\x04'
  const payload = Buffer.from(text, 'latin1').map((byte, at) => byte ^ mask.charCodeAt(at & 3))
  return `\x81${String.fromCharCode(0x80 | text.length)}${mask}${Buffer.from(payload).toString('latin1')}`
}

/** The first byte says where the stream is cut, the second who speaks: an odd one is the host. */
export const frames: Target = {
  name: 'frames',
  seeds: [
    '\x05\x01\x81\x05hello\x89\x00\x8a\x01x',
    '\x09\x01\x01\x0etok_"odd/+%sec\x80\x0eret~0123456789',
    '\x03\x01\x82\x7e\x00\x7e' + 'a'.repeat(126),
    '\x00\x01\x88\x02\x03\xe8',
    `\x09\x00${masked(secret)}`,
    '\x05\x00\x81\x85\x00\x00\x00\x00hello\x89\x80abcd',
    '\x07\x00\x01\x83\x01\x02\x03\x04abc\x80\x81\x00\x00\x00\x00d',
  ],
  words: [
    '\x81\x1ctok_"odd/+%secret~0123456789',
    '\x89\x1ctok_"odd/+%secret~0123456789',
    'tok_"odd/+%sec',
    'ret~0123456789',
    '\x01\x02to',
    '\x00\x01k',
    '\x80\x00',
    '\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01',
    '\x81\x7e\x00\x01',
    '\x81\x80\x00\x00\x00\x00',
    '\x81\x9c\x00\x00\x00\x00tok_"odd/+%secret~0123456789',
    '\x89\x80\x00\x00\x00\x00',
    '\xc1\x00',
    '\x83\x00',
  ],
  async run(bytes) {
    const { secrets } = await way()
    const [cut = 0, side = 0] = bytes
    const stream = bytes.subarray(2)
    const target = { host, port: 80 }
    const watch = () => secrets.swap.watch(target, 'counts')
    const step = (): Transform =>
      side % 2 === 1 ? redactingFrames(secrets.redactor) : watchedFrames([watch(), watch()])
    const whole = await through(step(), [stream])
    const inTwo = await through(
      step(),
      [stream.subarray(0, cut), stream.subarray(cut)].filter(({ length }) => length > 0),
    )
    equal(inTwo === null, whole === null)
    if (whole === null || inTwo === null) return
    const messages = messagesIn(whole)
    deepStrictEqual(messagesIn(inTwo), messages)
    if (side % 2 === 0) deepStrictEqual(whole, stream)
    for (const message of messages) ok(!holds(message, secret), 'the secret passes')
  },
}
