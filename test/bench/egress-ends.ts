// What stands at the other end of the way out, each in a process of its own, and ends with whoever started it: `host CERTIFICATE`;
// `proxy CERTIFICATE PORT CA`, which ends the client's TLS and speaks its own to the host, and looks at nothing in between; or
// `relay PORT`, which dials once it has heard something, and passes bytes on. See egress.ts.
import { once } from 'node:events'
import { createServer } from 'node:https'
import { type AddressInfo, connect as dial, createServer as createPlainServer, type Server } from 'node:net'
import { connect, createServer as createTlsServer } from 'node:tls'
import { address, hosts, megabytes } from './egress-setting.ts'

const [role, ...given] = process.argv.slice(2)
const server = (role === 'host' ? host() : role === 'proxy' ? proxy() : relay()).listen(0, address, 1024)
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.once('disconnect', () => process.exit())

function certificate(): { readonly cert: string; readonly key: string } {
  return JSON.parse(given[0] ?? '') as { readonly cert: string; readonly key: string }
}

/** Answers with a word, or with so many megabytes. */
function host(): Server {
  const part = Buffer.alloc(65_536, 'some text that is no secret, as an API may answer it; ')
  return createServer(certificate(), (request, response) => {
    if (request.url !== '/big') return void response.end('ok')
    let left = Math.ceil((megabytes * 1_000_000) / part.length)
    const more = (): void => {
      while (left-- > 0) if (!response.write(part)) return void response.once('drain', more)
      response.end()
    }
    more()
  })
}

function proxy(): Server {
  const [, port, ca = ''] = given
  return createTlsServer(certificate(), (client) => {
    const up = connect({ host: address, port: Number(port), servername: hosts.swap, ca })
    client.setNoDelay(true).pipe(up.setNoDelay(true)).pipe(client)
    for (const end of [client, up]) end.on('error', () => [client, up].forEach((it) => it.destroy()))
  })
}

function relay(): Server {
  const [port] = given
  return createPlainServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    client.once('data', (first) => {
      const up = dial({ host: address, port: Number(port), allowHalfOpen: true, noDelay: true })
      client.pause()
      up.once('connect', () => {
        up.write(first)
        client.pipe(up).pipe(client)
      })
      for (const end of [client, up]) end.on('error', () => [client, up].forEach((it) => it.destroy()))
    })
  })
}
