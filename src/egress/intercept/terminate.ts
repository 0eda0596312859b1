// The server's end of a client's TLS: for one host, in HTTP/1.1.
import type { Duplex } from 'node:stream'
import { type SecureContext, TLSSocket } from 'node:tls'
import { within } from '../../lib/deadline.ts'
import { Refusal } from './refusal.ts'

/**
 * Returns the deciphered stream of a client that names the host and trusts the sandbox's authority. Throws a Refusal for
 * a client that names another, or none, or is late; such a client gets an alert or nothing.
 */
export const terminate = async (
  client: Duplex,
  host: string,
  secureContext: SecureContext,
  ms: number,
  signal: AbortSignal,
): Promise<TLSSocket> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const refused = (reason: string): void => reject(new Refusal(421, reason, 'the handshake was refused'))
  const socket = new TLSSocket(client, {
    isServer: true,
    secureContext,
    ALPNProtocols: ['http/1.1'],
    SNICallback(name, done) {
      if (name.toLowerCase() === host) done(null, secureContext)
      else {
        refused('sni-mismatch')
        done(new Error('another host'))
      }
    },
  })
  socket.on('error', () => refused('handshake'))
  socket.once('close', () => refused('handshake'))
  socket.once('secure', () => {
    // The callback is not called where no name is sent
    if (typeof socket.servername === 'string' && socket.servername.toLowerCase() === host) resolve()
    else refused('sni-missing')
  })
  promise.catch(() => socket.destroy())
  try {
    await within(promise, ms, () => new Refusal(408, 'handshake-late', 'the handshake took too long'), signal)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}
