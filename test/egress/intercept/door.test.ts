// Through a sandbox's door as it is opened for real: what is judged there is handed on whole, and told of with its credential.
import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { expect, test } from 'vitest'
import type { EgressLimits } from '../../../src/schema/egress.ts'
import { testDoor } from '../../support/egress-door.ts'
import { eventually } from '../../support/eventually.ts'
import { host, intercepted, token, until } from '../../support/intercepted.ts'

type Way = Awaited<ReturnType<typeof intercepted>>

const doorFor = (at: Way, tls: boolean, limits: Partial<EgressLimits> = {}) =>
  testDoor({
    limits,
    grants: [
      { host, port: at.port, tls, private: true },
      { host: 'plain.test', port: at.port, tls: false },
    ],
    names: { [host]: ['127.0.0.2'], 'plain.test': ['127.0.0.2'] },
    interceptor: at.interceptor,
    screen: at.secrets.screen,
  })

const use = (at: Way): string =>
  `GET /x HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`

test.each([
  ['a connection to the address', (at: Way) => `SP1 connect ${host} ${at.port}\n`, null],
  [
    'CONNECT',
    (at: Way) => `SP1 proxy\nCONNECT ${at.authority} HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`,
    '\r\n\r\n',
  ],
] as const)('TLS over %s is swapped and masked, and cut with its lease', async (_, opening, greeting) => {
  const had: (string | undefined)[] = []
  await using at = await intercepted({
    http: (request, response) => {
      had.push(request.headers.authorization)
      response.end(`you are ${request.headers.authorization}`)
    },
  })
  await using door = await doorFor(at, true)
  const lease = await at.lease()
  const socket = door.says(opening(at))
  if (greeting !== null) await until(socket, greeting)
  const secured = connectTls({ socket, ca: at.interceptor.certificate, servername: host })
  await once(secured, 'secureConnect')
  secured.write(use(at))
  expect(await until(secured, 'you are')).toMatch(/you are Bearer \*+$/)
  expect(had).toEqual([`Bearer ${token}`])
  expect(door.door.connections()).toMatchObject([{ host, port: at.port, swapped: ['api'] }])
  lease.end()
  expect(await door.told('closed')).toMatchObject({ verdict: 'cut', reason: 'lease-ended', swapped: ['api'] })
})

test.each([
  ['a connection to the address', (at: Way) => `SP1 connect ${host} ${at.port}\n${use(at)}`],
  [
    'a request for it',
    (at: Way) => `SP1 proxy\n${use(at).replace('GET /x', `GET http://${at.authority}/x`)}`,
  ],
])('plain HTTP over %s is swapped and masked', async (_, say) => {
  const had: (string | undefined)[] = []
  await using at = await intercepted({
    tls: false,
    http: (request, response) => {
      had.push(request.headers.authorization)
      response.end(`you are ${request.headers.authorization}`)
    },
  })
  await using door = await doorFor(at, false)
  using _lease = await at.lease()
  expect(await until(door.says(say(at)), 'you are')).toMatch(/you are Bearer \*+$/)
  expect(had).toEqual([`Bearer ${token}`])
})

test('a placeholder on a plain connection elsewhere is cut before it goes up, and told', async () => {
  const had: string[] = []
  await using at = await intercepted({
    tls: false,
    raw: (socket) => socket.on('data', (part: Buffer) => had.push(part.toString())),
  })
  await using door = await doorFor(at, false)
  using _ = await at.lease()
  await door.answers(`SP1 connect plain.test ${at.port}\nhere: ${at.placeholder}\n`)
  await eventually(() => at.violations.length > 0)
  expect(at.violations).toMatchObject([{ credential: 'api', host: 'plain.test', reason: 'other-host' }])
  expect(had.join('')).not.toContain(at.placeholder)
})

test('an answer that comes for longer than a connection may be silent is not cut, and one that stops is', async () => {
  await using at = await intercepted({
    http: (_, response) => {
      let left = 6
      const timer = setInterval(() => {
        response.write('.')
        if (--left === 0) clearInterval(timer)
      }, 300)
      response.once('close', () => clearInterval(timer))
    },
  })
  await using door = await doorFor(at, true, { idleMs: 1000 })
  const socket = door.says(`SP1 connect ${host} ${at.port}\n`)
  const secured = connectTls({ socket, ca: at.interceptor.certificate, servername: host })
  let answer = ''
  secured.on('data', (part: Buffer) => (answer += part.toString()))
  secured.write(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`)
  expect(await door.told('closed')).toMatchObject({ verdict: 'cut', reason: 'idle' })
  expect(answer.match(/^\.\r$/gm)).toHaveLength(6)
  socket.destroy()
})

test('a hello that comes byte by byte is as good as any', async () => {
  await using at = await intercepted({ http: (_, response) => response.end('<end>') })
  await using door = await doorFor(at, true)
  const socket = door.says(`SP1 connect ${host} ${at.port}\n`).setNoDelay(true)
  const slow = new Duplex({
    read: () => void socket.resume(),
    write(chunk: Buffer, _, done) {
      for (const byte of chunk) socket.write(Buffer.of(byte))
      done()
    },
  })
  socket.on('data', (chunk) => void slow.push(chunk)).once('end', () => slow.push(null))
  const secured = connectTls({ socket: slow, ca: at.interceptor.certificate, servername: host })
  secured.write(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\n\r\n`)
  expect(await until(secured, '<end>')).toContain('200')
  socket.destroy()
})
