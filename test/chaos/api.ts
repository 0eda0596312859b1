// The API that servers of a run may reach, in the clear, over connections that it never closes by itself.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { secrets } from './secrets.ts'

export interface Api extends AsyncDisposable {
  readonly port: number
  /** Connections that are open and have carried the secret */
  carrying(): number
  /** Requests that came with the secret */
  used(): number
}

/** Starts it; it answers 200 to who has the secret, else 401. */
export async function openApi(): Promise<Api> {
  const carriers = new Set<Socket>()
  let used = 0
  const server = createServer({ keepAliveTimeout: 600_000 }, ({ headers, socket }, response) => {
    const isUsed = headers.authorization === `Bearer ${secrets.key}`
    if (isUsed) {
      used += 1
      carriers.add(socket)
      socket.once('close', () => carriers.delete(socket))
    }
    response.writeHead(isUsed ? 200 : 401).end('hello')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    carrying: () => carriers.size,
    used: () => used,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
