// HTTP as a server reads it that listens nowhere: it is given its streams, and has what is read handled by each stream's own.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { http } from '../../lib/node-http.ts'
import { holdLittle } from './hold-little.ts'
import type { InterceptLimits } from './limits.ts'
import { Refusal } from './refusal.ts'

/** What becomes of what is read from one stream. */
export interface Handlers {
  readonly request: (given: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (given: IncomingMessage, socket: Duplex, ahead: Buffer) => void
  /** `unread` is what could not be read as a request, as far as it came at once */
  readonly malformed: (socket: Duplex, refusal: Refusal, unread: Uint8Array) => void
}

/** What node:http says of bytes that are no request. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

/** Reads the requests of a stream, strictly; with `mayUpgrade` an upgrade is handled as one. */
export type ReadRequests = (stream: Duplex, mayUpgrade: boolean, handlers: Handlers) => void

/** Returns a reader for the streams of one sandbox. Making a server for each stream is what it spares. */
export const requestReader = (limits: InterceptLimits): ReadRequests => {
  const handlersOf = new WeakMap<Duplex, Handlers>()
  const servers = new Map<boolean, Server>()
  return (stream, mayUpgrade, handlers) => {
    const server = servers.get(mayUpgrade) ?? strictServer(limits, mayUpgrade, handlersOf)
    servers.set(mayUpgrade, server)
    handlersOf.set(stream, handlers)
    holdLittle(stream)
    server.emit('connection', stream)
  }
}

const strictServer = (
  { headBytes }: InterceptLimits,
  mayUpgrade: boolean,
  handlersOf: WeakMap<Duplex, Handlers>,
): Server => {
  const server = http.createServer({
    maxHeaderSize: headBytes,
    insecureHTTPParser: false,
    keepAliveTimeout: 0,
    requireHostHeader: false,
  })
  // Beyond a count node:http drops headers silently; the bytes are bounded, and they are counted later
  server.maxHeadersCount = 0
  server.timeout = 0
  const onRequest = (given: IncomingMessage, response: ServerResponse): void =>
    handlersOf.get(given.socket)?.request(given, response)
  server.on('request', onRequest)
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  // Without a listener an upgrade is a request like any other, and is refused as one
  if (mayUpgrade)
    server.on('upgrade', (given, socket, ahead) => handlersOf.get(socket)?.upgrade(given, socket, ahead))
  server.on('connect', ({ url = '', rawHeaders }, socket) =>
    handlersOf
      .get(socket)
      ?.malformed(
        socket,
        new Refusal(405, 'method', 'CONNECT is not passed on'),
        Buffer.from([url, ...rawHeaders].join('\n'), 'latin1'),
      ),
  )
  server.on('clientError', (error: ClientError, socket) =>
    handlersOf.get(socket)?.malformed(socket, refusalOf(error), error.rawPacket ?? Buffer.alloc(0)),
  )
  return server
}

const refusalOf = (error: ClientError): Refusal => {
  const { code } = error
  // An answer of ours that was broken off ends here too
  if (error instanceof Refusal) return error
  if (code === 'HPE_HEADER_OVERFLOW') return new Refusal(431, 'headers', 'the head is too long')
  if (code === 'HPE_INVALID_METHOD') return new Refusal(405, 'method', 'the method is not passed on')
  return new Refusal(400, 'malformed', 'the request can be read in more than one way, or in none')
}
