// The first bytes that make a server say something: a TLS handshake's, or a request of HTTP.
import { once } from 'node:events'
import { isIP } from 'node:net'
import { duplexPair } from 'node:stream'
import { connect } from 'node:tls'

/** Returns what a client of TLS, or of HTTP where none is spoken, says first to that host. */
export const opening = async ({
  host,
  port,
  isTls,
}: {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
}): Promise<Buffer> => {
  if (!isTls)
    return Buffer.from(
      `HEAD / HTTP/1.1\r\nHost: ${host}${port === 80 ? '' : `:${port}`}\r\nConnection: close\r\n\r\n`,
    )
  const [near, far] = duplexPair()
  // One curve: the hello stays small enough for one packet.
  const client = connect({
    socket: near,
    ecdhCurve: 'X25519',
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  client.on('error', () => undefined) // nobody answers: the first bytes are all that is wanted
  const [hello] = (await once(far, 'data')) as [Buffer]
  client.destroy()
  return hello
}
