// The two ends of the benchmark that run apart from the client: the server upstream, or the door. See door.ts.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { openDoor } from '../../src/egress/door.ts'
import type { InstanceId } from '../../src/lib/ids.ts'
import { certificate, certificateKey } from '../support/certificate.ts'

const [kind = '', path = '', tlsPort = '', plainPort = ''] = process.argv.slice(2)

if (kind === 'server') {
  const tls = createTlsServer({ cert: certificate, key: certificateKey }, (socket) => {
    socket.on('error', () => undefined).pipe(socket)
  }).listen(0, '127.0.0.1', 1024)
  const block = Buffer.alloc(1 << 16, 1)
  const plain = createServer((socket) => {
    let left = 0
    const more = (): void => {
      for (; left > 0; left -= block.length)
        if (!socket.write(block)) {
          left -= block.length
          return void socket.once('drain', more)
        }
      socket.end()
    }
    socket
      .on('error', () => undefined)
      .once('data', (megabytes: Buffer) => {
        left = Number(megabytes.toString()) * 2 ** 20
        more()
      })
  }).listen(0, '127.0.0.1', 1024)
  await Promise.all([once(tls, 'listening'), once(plain, 'listening')])
  process.send?.([tls.address(), plain.address()])
} else {
  const grant = { host: 'localhost', address: null, private: true, reason: 'the benchmark' }
  const limits = {
    connectMs: 10_000,
    handshakeMs: 10_000,
    idleMs: 60_000,
    totalMs: 600_000,
    connections: 256,
  }
  await openDoor(
    {
      server: 'bench',
      instance: 'i-bench' as InstanceId,
      grants: [
        { ...grant, port: Number(tlsPort), tls: true },
        { ...grant, port: Number(plainPort), tls: false },
      ],
      limits: { ...limits, bytesUp: 2 ** 40, bytesDown: 2 ** 40 },
    },
    {
      watch: { event: () => undefined, mayConnect: () => ({ open: true }) },
      interceptor: null,
      screen: null,
      path,
      uid: process.geteuid?.() ?? 0,
    },
  )
  process.send?.('ready')
}
process.on('message', () => process.send?.([process.memoryUsage().rss, process.cpuUsage()]))
process.on('disconnect', () => process.exit())
process.on('SIGINT', () => undefined) // a terminal's goes to all; whoever started this ends it
