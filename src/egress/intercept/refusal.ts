// The answers that are ours and not the host's: short, final, and silent about secrets.
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { http } from '../../lib/node-http.ts'
import { StacklessError } from '../../lib/stackless-error.ts'

/** Why a request or a connection was not served: a status, one stable word for events, and a line for the client. */
export class Refusal extends StacklessError {
  readonly status: number
  readonly reason: string

  constructor(status: number, reason: string, line: string) {
    super(line)
    this.status = status
    this.reason = reason
  }
}

/** All that a client learns where a credential is concerned. */
export const credentialRefused = (reason: string): Refusal =>
  new Refusal(403, reason, 'authentication failed')

/**
 * Answers with a refusal and ends the connection after it, for a client that asks for JSON where libraries of APIs look for what
 * failed. An answer that has begun is broken off instead.
 */
export const refuse = (response: ServerResponse, { status, message }: Refusal): void => {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const isJson = /json/i.test(response.req.headers.accept ?? '')
  const body = isJson ? JSON.stringify({ message, error: { message } }) : `${message}\n`
  response.sendDate = false
  // Said anew: what an answer that failed has left there may be why it did
  response.writeHead(status, http.STATUS_CODES[status], {
    'Content-Type': isJson ? 'application/json' : 'text/plain',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  })
  response.end(body)
}

/** The same for a client with whom no request was agreed on. */
export const refuseBare = (client: Duplex, { status, message }: Refusal): void => {
  if (!client.writable) {
    client.destroy()
    return
  }
  client.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(message) + 1}\r\nConnection: close\r\n\r\n${message}\n`,
  )
}
