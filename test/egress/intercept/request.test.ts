// What a hostile client says: nothing with two meanings goes up, and whatever is refused has no credential in it.
import { describe, expect, test } from 'vitest'
import { intercepted, talk, token, until } from '../../support/intercepted.ts'
import { eventually } from '../../support/eventually.ts'

/** A request with `Host` and the placeholder, as long as the case does not change that. */
type Case = readonly [name: string, status: number, write: (authority: string, placeholder: string) => string]

const get = (authority: string, ...lines: readonly string[]): string =>
  ['GET /x HTTP/1.1', `Host: ${authority}`, ...lines, '', ''].join('\r\n')
const post = (authority: string, headers: readonly string[], body: string): string =>
  ['POST /x HTTP/1.1', `Host: ${authority}`, ...headers, '', body].join('\r\n')
const chunked = 'Transfer-Encoding: chunked'

const cases: readonly Case[] = [
  ['CL with TE', 400, (at) => post(at, ['Content-Length: 4', chunked], '0\r\n\r\n')],
  ['TE with CL', 400, (at) => post(at, [chunked, 'Content-Length: 4'], '0\r\n\r\n')],
  ['two lengths', 400, (at) => post(at, ['Content-Length: 1', 'Content-Length: 2'], 'xx')],
  ['the same length twice', 400, (at) => post(at, ['Content-Length: 1', 'Content-Length: 1'], 'x')],
  ['a list of lengths', 400, (at) => post(at, ['Content-Length: 1, 1'], 'x')],
  ['a signed length', 400, (at) => post(at, ['Content-Length: +1'], 'x')],
  ['a negative length', 400, (at) => post(at, ['Content-Length: -1'], 'x')],
  ['a hexadecimal length', 400, (at) => post(at, ['Content-Length: 0x1'], 'x')],
  ['a length that overflows', 400, (at) => post(at, ['Content-Length: 99999999999999999999'], 'x')],
  ['a length that some read as octal', 400, (at) => post(at, ['Content-Length: 010'], '0123456789')],
  ['a folded line', 400, (at) => get(at, 'X: a', ' b')],
  ['a folded TE', 400, (at) => post(at, ['Transfer-Encoding:', ' chunked'], '0\r\n\r\n')],
  ['a bare LF in a head', 400, (at) => `GET /x HTTP/1.1\r\nHost: ${at}\r\nX: a\nY: b\r\n\r\n`],
  ['bare LFs throughout', 400, (at) => `GET /x HTTP/1.1\nHost: ${at}\n\n`],
  ['a bare CR in a head', 400, (at) => get(at, 'X: a\rY: b')],
  ['NUL in a value', 400, (at) => get(at, 'X: a\0b')],
  ['NUL in a name', 400, (at) => get(at, 'X\0Y: a')],
  ['a control character', 400, (at) => get(at, 'X: a\x01b')],
  ['a space before the colon', 400, (at) => get(at, 'X : a')],
  ['a header without a colon', 400, (at) => get(at, 'Xa')],
  ['a header without a name', 400, (at) => get(at, ': a')],
  ['another coding', 501, (at) => post(at, ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n')],
  ['chunked that is not last', 400, (at) => post(at, ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n')],
  ['chunked twice', 400, (at) => post(at, [chunked, chunked], '0\r\n\r\n')],
  ['chunked behind a vertical tab', 400, (at) => post(at, ['Transfer-Encoding: \x0bchunked'], '0\r\n\r\n')],
  ['a second Host', 400, (at) => get(at, `Host: ${at}`)],
  ['a second Host elsewhere', 400, (at) => get(at, 'Host: evil.test')],
  ['no Host', 400, () => 'GET /x HTTP/1.1\r\n\r\n'],
  ['another Host', 421, () => get('evil.test')],
  ['another port in Host', 421, () => get('localhost:1')],
  ['Host with a user', 421, (at) => get(`evil@${at}`)],
  ['Host with a list', 421, (at) => get(`${at}, evil.test`)],
  ['an absolute target elsewhere', 421, (at) => `GET https://evil.test/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['an absolute target of another scheme', 421, (at) => `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['an absolute target with a user', 421, (at) => `GET https://u@${at}/ HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['a fragment', 400, (at) => `GET /x#y HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['a target that is no path', 400, (at) => `GET x HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['a target beyond ASCII', 400, (at) => `GET /ä HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['TRACE', 405, (at) => `TRACE / HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['TRACK', 405, (at) => `TRACK / HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['CONNECT', 405, (at) => `CONNECT evil.test:443 HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['the preface of HTTP/2', 400, () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/1.0', 505, (at) => `GET / HTTP/1.0\r\nHost: ${at}\r\n\r\n`],
  ['HTTP/0.9', 505, () => 'GET /\r\n\r\n'],
  ['HTTP/2 in the line', 505, (at) => `GET / HTTP/2.0\r\nHost: ${at}\r\n\r\n`],
  ['a websocket that is not granted', 403, (at) => get(at, 'Connection: Upgrade', 'Upgrade: websocket')],
  ['an upgrade to h2c', 403, (at) => get(at, 'Connection: Upgrade', 'Upgrade: h2c')],
  ['another expectation', 417, (at) => get(at, 'Expect: 200-maybe')],
  [
    'Connection that names the credential',
    400,
    (at, ph) => get(at, `Authorization: ${ph}`, 'Connection: authorization'),
  ],
  ['Connection that names any header', 400, (at) => get(at, 'X: a', 'Connection: close, x')],
  ['two credentials', 400, (at, ph) => get(at, `Authorization: ${ph}`, `authorization: ${ph}`)],
  [
    'Transfer_Encoding',
    400,
    (at) => post(at, ['Transfer_Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n'),
  ],
  ['CONTENT_LENGTH', 400, (at) => post(at, ['CONTENT_LENGTH: 9', chunked], '0\r\n\r\n')],
  ['too many headers', 431, (at) => get(at, ...Array.from({ length: 250 }, (_, n) => `X-${n}: a`))],
  ['a head of 70 kB', 431, (at) => get(at, `X: ${'a'.repeat(70_000)}`)],
]

test.each(cases)('%s is refused with %i, and nothing is dialled', async (_, status, write) => {
  await using at = await intercepted()
  using _lease = await at.lease()
  const answer = await at.say(write(at.authority, at.placeholder))
  expect(answer.slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
  expect(answer).not.toContain(token)
  expect(at.log).toMatchObject({ dialled: 0, swapped: [] })
  expect(at.log.cut).toHaveLength(1)
})

test('what some hosts take for a second credential is refused, and other headers with _ pass', async () => {
  await using at = await intercepted({ injection: { headers: ['x-api-key'] } })
  using _lease = await at.lease()
  const twice = get(at.authority, `X-Api-Key: ${at.placeholder}`, 'X_API-KEY: mine', 'Connection: close')
  expect(await at.say(twice)).toMatch(/^HTTP\/1\.1 400 /)
  expect(at.log).toMatchObject({ dialled: 0, swapped: [] })
  const other = get(at.authority, `X-Api-Key: ${at.placeholder}`, 'Other_Key: mine', 'Connection: close')
  expect(await at.say(other)).toContain('Other_Key')
})

test.each<readonly [string, (at: string, placeholder: string, stolen: string) => string]>([
  ['in Host', (_, ph) => get(ph)],
  [
    'in the target of another host',
    (at, ph) => `GET https://evil.test/${ph} HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
  ],
  ['in the target of TRACE', (at, ph) => `TRACE /${ph} HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['of another host in a refused head', (at, _, stolen) => get(at, 'X: a', 'Connection: x', `Y: ${stolen}`)],
])('a placeholder %s is told of, although the head is refused anyway', async (_, write) => {
  await using at = await intercepted()
  using _lease = await at.lease()
  await at.say(write(at.authority, at.placeholder, at.otherPlaceholder))
  expect(at.violations).toHaveLength(1)
  expect(at.log).toMatchObject({ dialled: 0, swapped: [], cut: [expect.stringMatching(/^credential-/)] })
})

const bodies: readonly (readonly [string, string])[] = [
  ['a size of 0x1', '0x1\r\nx\r\n0\r\n\r\n'],
  ['a size with a space', '1 \r\nx\r\n0\r\n\r\n'],
  ['a size with a sign', '+1\r\nx\r\n0\r\n\r\n'],
  ['a size that overflows', 'fffffffffffffffff\r\nx\r\n0\r\n\r\n'],
  ['an empty size', '\r\nx\r\n0\r\n\r\n'],
  ['a size that ends in LF', '1\nx\r\n0\r\n\r\n'],
  ['data that ends in LF', '1\r\nx\n0\r\n\r\n'],
  ['data longer than its size', '1\r\nxy\r\n0\r\n\r\n'],
  ['an extension with LF', '1;a="\n"\r\nx\r\n0\r\n\r\n'],
  ['an extension with CR', '1;a=\rb\r\nx\r\n0\r\n\r\n'],
]

test.each(bodies)('a chunked body with %s is never completed upstream', async (_, body) => {
  const whole: string[] = []
  await using at = await intercepted({
    http: (request, response) => {
      request.on('error', () => undefined)
      request.resume().on('end', () => {
        whole.push('whole')
        response.end()
      })
    },
  })
  await at.say(post(at.authority, [chunked], body))
  await eventually(() => at.upstreams.size === 0)
  expect(whole).toEqual([])
})

test('a coding that only ends like chunked ends the connection, and nothing is dialled', async () => {
  await using at = await intercepted()
  expect(await at.say(post(at.authority, ['Transfer-Encoding: xchunked'], '0\r\n\r\n'))).not.toContain('200')
  expect(at.log.dialled).toBe(0)
})

test.each([
  ['a head with two readings', (at: string) => get(at, `X : ${token}`)],
  ['a method that nobody knows', (at: string) => `${token} / HTTP/1.1\r\nHost: ${at}\r\n\r\n`],
  ['CONNECT', (at: string) => `CONNECT evil.test:443 HTTP/1.1\r\nHost: ${at}\r\nX: ${token}\r\n\r\n`],
])('a secret is told of in %s, though nothing of it goes up', async (_, write) => {
  await using at = await intercepted()
  using _lease = await at.lease()
  await at.say(write(at.authority))
  expect(at.violations).toMatchObject([{ credential: 'api', reason: 'value' }])
  expect(at.log).toMatchObject({ dialled: 0, cut: ['credential-value'] })
})

test('what goes up is framed anew: extensions of chunks, trailers and words for the next hop stay behind', async () => {
  const { promise: seen, resolve } = Promise.withResolvers<string>()
  await using at = await intercepted({
    raw: (socket) => {
      let all = ''
      socket.on('data', (part: Buffer) => {
        all += part.toString('latin1')
        if (!all.includes('0\r\n\r\n')) return
        resolve(all)
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
    },
  })
  await at.say(
    post(
      at.authority,
      [
        chunked,
        'Connection: close, TE',
        'TE: trailers',
        'Trailer: X-After',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic eDp5',
        'Accept-Encoding: gzip, br',
        'X-Kept: yes',
      ],
      '3;ext=1\r\nabc\r\n0\r\nX-After: no\r\nAuthorization: Bearer later\r\n\r\n',
    ),
  )
  expect((await seen).split('\r\n')).toEqual([
    'POST /x HTTP/1.1',
    `Host: ${at.authority}`,
    'X-Kept: yes',
    'Accept-Encoding: identity',
    'Transfer-Encoding: chunked',
    '',
    '3',
    'abc',
    '0',
    '',
    '',
  ])
})

test('an absolute target of the host itself goes up as a path, and Host as it is known', async () => {
  await using at = await intercepted()
  const answer = await at.say(
    `GET https://LOCALHOST:${at.port}/p?q=1 HTTP/1.1\r\nHost: LocalHost.:${at.port}\r\nConnection: close\r\n\r\n`,
  )
  expect(answer).toContain('"url":"/p?q=1"')
  expect(answer).toContain(`"Host","${at.authority}"`)
})

describe('a request smuggled behind another', () => {
  test('is a request of its own, judged as such', async () => {
    const urls: string[] = []
    await using at = await intercepted({
      http: (request, response) => {
        urls.push(request.url ?? '')
        request.resume()
        response.end('ok')
      },
    })
    const inner = `GET /admin HTTP/1.1\r\nHost: evil.test\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`
    using _ = await at.lease()
    const answer = await at.say(get(at.authority) + inner)
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 421'])
    expect(urls).toEqual(['/x'])
  })

  test('is part of the body where it lies within its length', async () => {
    const seen: string[] = []
    await using at = await intercepted({
      http: (request, response) => {
        seen.push(request.url ?? '')
        request.resume().on('end', () => response.end('ok'))
      },
    })
    const inner = 'GET /admin HTTP/1.1\r\nHost: a\r\n\r\n'
    const headers = [`Content-Length: ${inner.length}`, 'Connection: close']
    expect(await at.say(post(at.authority, headers, inner))).toContain('200 OK')
    expect(seen).toEqual(['/x'])
  })
})

test('requests ahead are answered in their order over one connection, and beyond a number cut it', async () => {
  await using at = await intercepted({ http: (request, response) => response.end(`<${request.url}>`) })
  const ahead = (count: number): string =>
    Array.from({ length: count }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`).join('')
  const socket = await at.raw()
  const answers = until(socket, '</9>')
  socket.write(ahead(10))
  expect((await answers).match(/<\/\d>/g)).toEqual(Array.from({ length: 10 }, (_, n) => `</${n}>`))
  expect(at.log).toMatchObject({ dialled: 1, cut: [] })
  await talk(socket, ahead(100))
  expect(at.log.cut).toEqual(['pipelining'])
})

test('a head that comes too slowly is cut, the first and those that follow', async () => {
  await using at = await intercepted({ limits: { handshakeMs: 150, idleMs: 150 } })
  await talk(await at.raw(), 'GET / HTTP/1.1\r\nHost: ')
  expect(at.log.cut).toEqual(['head-late'])
  await talk(await at.raw(), `${get(at.authority)}GET / HT`)
  expect(at.log.cut).toEqual(['head-late', 'idle'])
})

test('Expect: 100-continue waits for the host’s word', async () => {
  await using at = await intercepted({
    http: (request, response) => request.resume().on('end', () => response.end('thanks')),
  })
  const socket = await at.raw()
  socket.write(post(at.authority, ['Content-Length: 2', 'Expect: 100-continue', 'Connection: close'], ''))
  expect(await until(socket, '\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  expect(await talk(socket, 'ok')).toContain('thanks')
})

test('a host that declines before the body has the last word: the body is not taken for a request', async () => {
  const urls: string[] = []
  await using at = await intercepted({
    raw: (socket) => {
      socket.on('data', (part: Buffer) => urls.push(part.toString('latin1').split('\r\n')[0] ?? ''))
      socket.write('HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno')
    },
  })
  const inner = get(at.authority)
  const socket = await at.raw()
  const all = talk(
    socket,
    post(at.authority, [`Content-Length: ${inner.length}`, 'Expect: 100-continue'], ''),
  )
  const answer = await all
  expect(answer).toContain('HTTP/1.1 417')
  expect(answer).toContain('Connection: close')
  expect(urls).toHaveLength(1)
})
