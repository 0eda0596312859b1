// Where a placeholder becomes the secret, and where it never does, whatever the server in the sandbox sends.
import type { IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { intercepted, otherToken, token } from '../../support/intercepted.ts'

interface Seen {
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Buffer
}

/** A way to a host that notes what it is told and answers with as little as it can. */
async function noting(options: Parameters<typeof intercepted>[0] = {}) {
  const seen: Seen[] = []
  const http = async (request: IncomingMessage, response: { end(text: string): unknown }): Promise<void> => {
    const parts: Buffer[] = []
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
    seen.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts) })
    response.end('ok')
  }
  const at = await intercepted({
    http: (request, response) => void http(request, response).catch(() => request.destroy()),
    ...options,
  })
  const say = (line = '', headers: readonly string[] = [], body: string | Buffer = ''): Promise<string> =>
    at.say(
      Buffer.concat([
        Buffer.from([line, `Host: ${at.authority}`, ...headers, 'Connection: close', '', ''].join('\r\n')),
        Buffer.from(body),
      ]),
    )
  return { ...at, seen, say, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() }
}

const refusedPlainly = (answer: string): void => {
  expect(answer).toMatch(/^HTTP\/1\.1 403 /)
  expect(answer.split('\r\n\r\n')[1]).toBe('authentication failed\n')
}

test('who asks for JSON is refused in JSON, where libraries of APIs look for what failed', async () => {
  await using at = await noting()
  const answer = await at.say('GET / HTTP/1.1', [
    `Authorization: Bearer ${at.placeholder}`,
    'Accept: application/vnd.github.v3+json',
  ])
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toContain('HTTP/1.1 403 ')
  expect(head).toContain('Content-Type: application/json')
  const message = 'authentication failed'
  expect(JSON.parse(body)).toEqual({ message, error: { message } })
})

test('in its header, and the connection is known to carry it', async () => {
  await using at = await noting()
  using _ = await at.lease()
  await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`])
  expect(at.seen[0]?.headers['authorization']).toBe(`Bearer ${token}`)
  expect(at.log).toMatchObject({ swapped: ['api'], cut: [] })
  expect(at.violations).toEqual([])
})

test('and then the request asks for the whole, since two parts could bring back half of it each', async () => {
  await using at = await noting()
  using _ = await at.lease()
  const parts = ['Range: bytes=0-20', 'If-Range: "x"']
  await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`, ...parts])
  await at.say('GET /public HTTP/1.1', parts)
  expect(at.seen.map(({ headers }) => [headers['range'], headers['if-range']])).toEqual([
    [undefined, undefined],
    ['bytes=0-20', '"x"'],
  ])
})

test.each([
  ['of a length', (body: string) => [`Content-Length: ${body.length}`], (body: string) => body],
  [
    'in chunks',
    () => ['Transfer-Encoding: chunked'],
    (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ],
])('so does one with a body %s where bodies are swapped in', async (_what, framed, written) => {
  await using at = await noting({ injection: { body: true } })
  using _ = await at.lease()
  const body = at.placeholder
  await at.say('POST / HTTP/1.1', [...framed(body), 'Range: bytes=0-20', 'If-Range: "x"'], written(body))
  expect(
    at.seen.map(({ headers, body: sent }) => [headers['range'], headers['if-range'], sent.toString()]),
  ).toEqual([[undefined, undefined, token]])
})

test('in letters beyond ASCII, as the bytes that they are', async () => {
  await using at = await noting({ secret: 'pässwort-mit-€-0123456789' })
  using _ = await at.lease()
  await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`])
  const got = Buffer.from(String(at.seen[0]?.headers['authorization']), 'latin1').toString()
  expect(got).toBe('Bearer pässwort-mit-€-0123456789')
})

test.each(['user:PH', 'PH:', 'PH:x-oauth-basic', 'PH'])(
  'in Basic, decoded and encoded again: %s',
  async (shape) => {
    await using at = await noting()
    using _ = await at.lease()
    const basic = (value: string): string => Buffer.from(shape.replace('PH', value)).toString('base64')
    await at.say('GET / HTTP/1.1', [`Authorization: Basic ${basic(at.placeholder)}`])
    expect(at.seen[0]?.headers['authorization']).toBe(`Basic ${basic(token)}`)
  },
)

test('in a header that the entry names, and then in no other, Authorization included', async () => {
  await using at = await noting({ injection: { headers: ['x-api-key'] } })
  using _ = await at.lease()
  await at.say('GET / HTTP/1.1', [`X-Api-Key: ${at.placeholder}`])
  expect(at.seen[0]?.headers['x-api-key']).toBe(token)
  refusedPlainly(await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`]))
  const basic = Buffer.from(`u:${at.placeholder}`).toString('base64')
  refusedPlainly(await at.say('GET / HTTP/1.1', [`Authorization: Basic ${basic}`]))
  expect(at.seen).toHaveLength(1)
})

test('in the query, encoded, where the entry says so', async () => {
  await using at = await noting({ injection: { query: true } })
  using _ = await at.lease()
  await at.say(`GET /p?a=1&key=${at.placeholder}&b HTTP/1.1`, [])
  expect(at.seen[0]?.url).toBe(`/p?a=1&key=${encodeURIComponent(token)}&b`)
  refusedPlainly(await at.say(`GET /${at.placeholder}/p?a=1 HTTP/1.1`, []))
})

test.each([
  ['application/json', JSON.stringify({ a: 'PH', b: ['PH'] }), JSON.stringify({ a: token, b: [token] })],
  ['application/vnd.api+json; charset=utf-8', '{"k":"PH"}', JSON.stringify({ k: token })],
  ['application/x-www-form-urlencoded', 'a=1&k=PH', `a=1&k=${encodeURIComponent(token)}`],
  ['text/plain', 'PHPH', token + token],
])('in a body of %s where the entry says so, however it is framed', async (type, body, wanted) => {
  await using at = await noting({ injection: { body: true }, limits: { countedBodyBytes: 200 } })
  using _ = await at.lease()
  const filled = body.replaceAll('PH', at.placeholder)
  const headers = [`Content-Type: ${type}`]
  await at.say('POST / HTTP/1.1', [...headers, `Content-Length: ${filled.length}`], filled)
  // Cut within each placeholder
  const chunks = (filled.match(/.{1,7}/gs) ?? []).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
  await at.say('POST / HTTP/1.1', [...headers, 'Transfer-Encoding: chunked'], `${chunks.join('')}0\r\n\r\n`)
  const long = filled + ' '.repeat(300)
  await at.say('POST / HTTP/1.1', [...headers, `Content-Length: ${long.length}`], long)
  expect(at.seen.map(({ body: got }) => got.toString().trimEnd())).toEqual([wanted, wanted, wanted])
  expect(at.seen.map(({ headers: got }) => got['content-length'])).toEqual([
    String(Buffer.byteLength(wanted)),
    undefined,
    undefined,
  ])
})

test('not in a compressed body: what goes up there stands for nothing', async () => {
  await using at = await noting({ injection: { body: true } })
  using _ = await at.lease()
  const body = gzipSync(at.placeholder)
  await at.say('POST / HTTP/1.1', ['Content-Encoding: gzip', `Content-Length: ${body.length}`], body)
  expect(at.seen[0]?.body).toEqual(body)
  expect(at.log.swapped).toEqual([])
})

test.each([
  ['another header', (ph: string) => ['GET / HTTP/1.1', [`X-Copy: ${ph}`]]],
  ['Cookie', (ph: string) => ['GET / HTTP/1.1', [`Cookie: a=${ph}`]]],
  ['a header that does not go up', (ph: string) => ['GET / HTTP/1.1', [`Proxy-Authorization: ${ph}`]]],
  ['the name of a header', (ph: string) => ['GET / HTTP/1.1', [`${ph}: x`]]],
  ['the path', (ph: string) => [`GET /${ph} HTTP/1.1`, []]],
  ['the query', (ph: string) => [`GET /?k=${ph} HTTP/1.1`, []]],
  ['Basic of another header', (ph: string) => ['GET / HTTP/1.1', [`X-A: Basic ${btoa(`u:${ph}`)}`]]],
] as readonly (readonly [string, (ph: string) => readonly [string, readonly string[]]])[])(
  'not in %s: the request is refused, and told as a violation',
  async (_, write) => {
    await using at = await noting()
    using _lease = await at.lease()
    const [line, headers] = write(at.placeholder)
    refusedPlainly(await at.say(line, headers))
    expect(at.seen).toEqual([])
    expect(at.log.dialled).toBe(0)
    expect(at.violations).toMatchObject([{ credential: 'api', reason: 'other-place' }])
  },
)

test.each([
  ['a length', (ph: string) => [`Content-Length: ${ph.length + 2}`, `<${ph}>`]],
  [
    'chunks, cut within it',
    (ph: string) => [
      'Transfer-Encoding: chunked',
      `14\r\n${ph.slice(0, 20)}\r\n14\r\n${ph.slice(20)}\r\n0\r\n\r\n`,
    ],
  ],
  ['a trailer', (ph: string) => ['Transfer-Encoding: chunked', `0\r\nX-T: ${ph}\r\n\r\n`]],
] as readonly (readonly [string, (ph: string) => readonly [string, string]])[])(
  'not in a body with %s: the request is never completed',
  async (_, write) => {
    await using at = await noting()
    using _lease = await at.lease()
    const [header, body] = write(at.placeholder)
    refusedPlainly(await at.say('POST / HTTP/1.1', [header, `Authorization: ${at.placeholder}`], body))
    expect(at.seen).toEqual([])
    expect(at.violations).toMatchObject([{ credential: 'api', reason: 'other-place' }])
  },
)

test('not without a lease, before it or after', async () => {
  await using at = await noting()
  const use = () => at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`])
  refusedPlainly(await use())
  const lease = await at.lease()
  expect(await use()).toContain('200 OK')
  lease.end()
  refusedPlainly(await use())
  expect(at.seen).toHaveLength(1)
  expect(at.violations.map(({ reason }) => reason)).toEqual(['no-lease', 'no-lease'])
})

test('not for the host of another credential', async () => {
  await using at = await noting()
  using _ = await at.lease()
  refusedPlainly(await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.otherPlaceholder}`]))
  expect(at.violations).toMatchObject([{ credential: 'other', reason: 'other-host' }])
})

test('the secret itself, in any form, is refused wherever the sandbox sends it', async () => {
  await using at = await noting()
  using _ = await at.lease()
  for (const [headers, body] of [
    [[`Authorization: Bearer ${token}`], ''],
    [[`Authorization: Basic ${btoa(`user:${token}`)}`], ''],
    [[`X-A: ${Buffer.from(token).toString('hex')}`], ''],
    [[`Content-Length: ${token.length}`], token],
  ] as const)
    refusedPlainly(await at.say('POST / HTTP/1.1', headers, body))
  refusedPlainly(await at.say(`GET /?q=${encodeURIComponent(token)} HTTP/1.1`, []))
  expect(at.violations).toHaveLength(5)
  for (const violation of at.violations)
    expect(violation).toMatchObject({ credential: 'api', reason: 'value' })
  expect(at.seen).toEqual([])
})

test('a request without a placeholder passes, with a lease or without', async () => {
  await using at = await noting()
  expect(await at.say('GET /free HTTP/1.1', ['Authorization: Bearer mine'])).toContain('200 OK')
  expect(at.seen[0]?.headers['authorization']).toBe('Bearer mine')
  expect(at.log.swapped).toEqual([])
})

test('in plain HTTP where the entry names such a host', async () => {
  await using at = await noting({ tls: false })
  using _ = await at.lease()
  expect(await at.say('GET / HTTP/1.1', [`Authorization: Bearer ${at.placeholder}`])).toContain('200 OK')
  expect(at.seen[0]?.headers['authorization']).toBe(`Bearer ${token}`)
})

test('a plain connection elsewhere is cut at the chunk that completes a placeholder or a secret', async () => {
  await using at = await noting()
  using _ = await at.lease()
  const target = { ...at.target, host: 'plain.test', port: 80 }
  for (const text of [at.placeholder, at.otherPlaceholder, token, btoa(`x:${token}`)]) {
    const bytes = Buffer.from(`GET /?q=${text} HTTP/1.1\r\n`)
    const end = bytes.indexOf(' HTTP')
    for (let cut = 1; cut < end; cut++) {
      const mayGo = at.secrets.screen.stream(target)
      expect(mayGo(bytes.subarray(0, cut))).toBe(true)
      expect(mayGo(bytes.subarray(cut))).toBe(false)
    }
  }
  expect(at.secrets.screen.stream(target)(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toBe(true)
  expect(new Set(at.violations.map(({ reason }) => reason))).toEqual(new Set(['other-host', 'value']))
  expect(JSON.stringify(at.violations)).not.toContain(otherToken)
})
