// What Node's own parsers of HTTP hear on a connection, the strict one and the lax one.
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Duplex } from 'node:stream'

export interface Heard {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly fields: readonly string[]
  readonly body: string
}

/** What a server of Node's hears on a connection that carries these bytes; `refused` where it answers that it can't read them. */
export async function hear(
  bytes: Buffer,
  insecureHTTPParser: boolean,
): Promise<{ heard: readonly Heard[]; isRefused: boolean }> {
  const heard: Heard[] = []
  let isRefused = false
  const { promise, resolve } = Promise.withResolvers<void>()
  const waiting: Promise<void>[] = []
  const server: Server = createServer({ insecureHTTPParser }, (request, response) => {
    response.end()
    waiting.push(take(request).then((it) => void heard.push(it)))
  })
  server.on('clientError', () => {
    isRefused = true
    resolve()
  })
  for (const other of ['connect', 'upgrade', 'checkContinue', 'checkExpectation'] as const)
    server.on(other, (request: IncomingMessage) => {
      waiting.push(take(request).then((it) => void heard.push(it)))
      if (other === 'connect' || other === 'upgrade') resolve()
    })
  const wire = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  wire.on('close', resolve).on('error', resolve)
  server.emit('connection', wire)
  wire.push(bytes)
  wire.push(null)
  await promise
  wire.destroy()
  await Promise.all(waiting)
  return { heard, isRefused }
}

const take = (request: IncomingMessage): Promise<Heard> => {
  const { promise, resolve } = Promise.withResolvers<Heard>()
  let body = ''
  const done = (): void =>
    resolve({ method: request.method, url: request.url, fields: request.rawHeaders, body })
  request.setEncoding('latin1').on('data', (text: string) => (body += text))
  request.on('end', done).on('error', done).on('close', done)
  return promise
}
