// HTTP requests that a server sends: what the proxy lets pass is one request to every parser of Node's, the lax one too.
import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import { bodyOf, framingOf } from '../../../src/egress/http-framing.ts'
import { type Head, headReader } from '../../../src/egress/http-head.ts'
import { absoluteTarget, connectTarget, forwarded, judgedFraming } from '../../../src/egress/http-request.ts'
import { Refusal } from '../../../src/egress/refusal.ts'
import { type Heard, hear } from '../hear.ts'
import type { Target } from '../target.ts'

const target = { host: 'a.test', port: 80 }

/** The request that the bytes begin with, and its own bytes; null where there is no whole one. */
function taken(bytes: Buffer): { head: Head; own: Buffer; body: string } | null {
  const found = headReader()(bytes)
  if (found === null) return null
  const payload: Buffer[] = []
  const rest = bytes.subarray(found.used)
  const framing = framingOf(found.value)
  const body = bodyOf(framing, (piece) => (payload.push(Buffer.from(piece)), null))
  const used = body.take(rest)
  const isWhole =
    framing.kind === 'chunked'
      ? body.take(Buffer.of(0)) === 0
      : framing.kind !== 'length' || used === framing.bytes
  if (!isWhole) return null
  return {
    head: found.value,
    own: bytes.subarray(0, found.used + used),
    body:
      framing.kind === 'chunked'
        ? Buffer.concat(payload).toString('latin1')
        : rest.toString('latin1', 0, used),
  }
}

async function expectSame(bytes: Buffer, said: Heard): Promise<void> {
  for (const isLax of [false, true]) {
    const { heard, isRefused } = await hear(bytes, isLax)
    ok(heard.length <= 1, `one request was let through, and ${heard.length} are heard`)
    const [only] = heard
    if (only === undefined) ok(isRefused, 'a request was let through, and nothing is heard')
    else deepStrictEqual(only, said)
  }
}

/** The host to other readers of URLs; the dot of the root says nothing. */
const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, '')

/** A request in full: heads, bodies and their ends. */
export const http: Target = {
  name: 'http',
  seeds: [
    'GET /a?b HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n',
    'POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc',
    'POST / HTTP/1.1\r\nHost: a.test:80\r\nTransfer-Encoding: chunked\r\nX:  y \t\r\n\r\n2\r\nok\r\na\r\n0123456789\r\n0\r\n\r\n',
    'OPTIONS * HTTP/1.0\r\nhost: A.test\r\nConnection: close, x\r\nX: \x80\xff\r\n\r\n',
    'CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n',
  ],
  words: [
    '\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    ' ',
    '\t',
    '\0',
    '\x0b',
    ':',
    ',',
    '0\r\n\r\n',
    '0;x=y\r\n',
    '00',
    '-1',
    '+3',
    '0x3',

    'Content-Length: 3\r\n',
    'Content-Length: 0\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: identity\r\n',

    'Host: a.test\r\n',
    'Host: b.test\r\n',
    'Connection: ',
    'Upgrade: h2c\r\n',
    'Expect: 100-continue\r\n',
    'Trailer: X\r\n',

    'HTTP/1.0',
    'HTTP/1.1',
    'HTTP/2.0',
    'PRI * ',
    'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n',
    'http://a.test',
    '#',
    '%00',
    '@',
    'M-SEARCH',
    'QUERY',
    'PURGE',
    'SOURCE',
    'BREW',
    'HEAD',
    'DELETE',
    'TRACE',
  ],
  async run(bytes) {
    try {
      const found = taken(bytes)
      if (found === null) return
      const { head, own, body } = found
      if (head.method === 'CONNECT') {
        const { host, port } = connectTarget(head)
        equal(host, hostOf(`http://${head.target}`))
        ok(port > 0 && port < 65_536)
        return
      }
      if (/^http:/i.test(head.target)) equal(absoluteTarget(head).host, hostOf(head.target))
      // As it was written, where the connection is taken apart; and as it is written anew, where it goes to a proxy.
      judgedFraming(head, target)
      await expectSame(own, { method: head.method, url: head.target, fields: head.fields.flat(), body })
      const anew = forwarded(head, target)
      const rest = own.subarray(headReader()(own)?.used)
      const again = headReader()(Buffer.from(anew.head, 'latin1'))?.value
      ok(again !== undefined, 'what is written anew is no head')
      equal(again.target.startsWith('/') || again.target === '*', true)
      await expectSame(Buffer.concat([Buffer.from(anew.head, 'latin1'), rest]), {
        method: head.method,
        url: again.target,
        fields: again.fields.flat(),
        body,
      })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  },
}
