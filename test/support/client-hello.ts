// ClientHellos: one that Node's own TLS sends, and ones that are built field by field to be wrong.
import { Duplex } from 'node:stream'
import { connect } from 'node:tls'

/** What Node sends first to a server of that name; without a name it sends none. */
export async function realHello(servername?: string): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const wire = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      resolve(chunk)
      done()
    },
  })
  const socket = connect({ socket: wire, ...(servername === undefined ? {} : { servername }) })
  socket.on('error', () => undefined)
  const hello = await promise
  socket.destroy()
  return hello
}

const vector = (width: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(width)
  length.writeUIntBE(body.length, 0, width)
  return Buffer.concat([length, body])
}

/** One extension. */
export const extension = (kind: number, body: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([kind >> 8, kind & 255]), vector(2, body)])

/** A server_name extension with these names, all of kind host_name. */
export const serverName = (...names: readonly string[]): Buffer =>
  extension(
    0,
    vector(
      2,
      ...names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name, 'latin1'))])),
    ),
  )

/** An encrypted_client_hello extension as a client writes it, with a config that nobody knows. */
export const encryptedHello = (): Buffer =>
  extension(
    0xfe0d,
    Buffer.concat([
      Buffer.from([0, 0, 1, 0, 1, 7]),
      vector(2, Buffer.alloc(32, 1)),
      vector(2, Buffer.alloc(64, 2)),
    ]),
  )

/** The handshake message of a ClientHello with these extensions, or without that field. */
export const helloMessage = (extensions: readonly Uint8Array[] | null): Buffer => {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 9),
    vector(1),
    vector(2, Buffer.from([0x13, 0x01])),
    vector(1, Buffer.from([0])),
    extensions === null ? Buffer.alloc(0) : vector(2, ...extensions),
  ])
  return Buffer.concat([Buffer.from([1]), vector(3, body)])
}

/** Bytes as TLS records of these lengths, the last taking what is left. */
export const records = (message: Uint8Array, ...lengths: readonly number[]): Buffer => {
  const cuts = [...lengths.filter((it) => it > 0), message.length]
  let at = 0
  return Buffer.concat(
    cuts.flatMap((length) => {
      const piece = message.subarray(at, at + length)
      at += piece.length
      return piece.length === 0 ? [] : [Buffer.from([22, 3, 1]), vector(2, piece)]
    }),
  )
}
