// Plain HTTP on port 80 as unmodified programs speak it, played against a door in a network of its own, and told as JSON.
import { createServer } from 'node:http'
import { once } from 'node:events'
import { testDoor } from '../../support/egress-door.ts'
import { eventually } from '../../support/eventually.ts'
import { serveNames } from '../../support/dns-server.ts'

await serveNames(({ type }) => (type === 'A' ? [{ type: 'A', data: '93.184.216.34' }] : []))
const seen: string[] = []
const server = createServer((request, response) => {
  seen.push(`${request.method} ${request.headers.host} ${request.url}`)
  if (request.url === '/leave') response.writeHead(302, { Location: 'http://169.254.169.254/latest/' }).end()
  else request.pipe(response)
})
server.listen(80, '93.184.216.34')
await once(server, 'listening')
const door = await testDoor({
  grants: [{ host: 'plain.test', port: 80, tls: false, private: false }],
  limits: { handshakeMs: 300 },
})
const line = 'SP1 connect plain.test 80\n'
const play = async (request: string): Promise<unknown> => {
  const before = [seen.length, door.events.length] as const
  const answer = await door.answers(line + request)
  await eventually(() => door.door.connections().length === 0)
  return {
    status: answer.slice(9, 12),
    seen: seen.slice(before[0]),
    events: door.events.slice(before[1]).map(({ kind, reason }) => `${kind} ${reason}`),
  }
}
const get = (host: string, path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
const outcomes = {
  right: await play(get('plain.test')),
  upper: await play(get('PLAIN.test:80')),
  fronted: await play(get('evil.test')),
  absolute: await play(get('plain.test', 'http://evil.test/')),
  second: await play(get('plain.test') + get('evil.test')),
  redirect: await play(get('plain.test', '/leave')),
  banner: await play('SSH-2.0-OpenSSH_9.2\r\n'),
  silent: await play(''),
  post: await play('POST / HTTP/1.1\r\nHost: plain.test\r\nContent-Length: 5\r\n\r\nhello'),
  followed: await door.refuses('SP1 connect 169.254.169.254 80\n'),
}
await door[Symbol.asyncDispose]()
process.stdout.write(`${JSON.stringify(outcomes)}\n`, () => process.exit())
