// ClientHellos: the name that is read is the one that OpenSSL reads, and where it reads none there is none.
import { equal, ok } from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { createSecureContext, TLSSocket } from 'node:tls'
import { ClientHello } from '../../../src/egress/client-hello.ts'
import { Refusal } from '../../../src/egress/refusal.ts'
import { canonicalHost } from '../../../src/lib/host-name.ts'
import { encryptedHello, extension, helloMessage, records, serverName } from '../../support/client-hello.ts'
import { certificate, certificateKey } from '../../support/certificate.ts'
import type { Target } from '../target.ts'

const alert = 21
let context: ReturnType<typeof createSecureContext> | undefined

/** What OpenSSL takes for the name; null where it goes on without one, and `refused` where it goes on with nothing. */
async function nameToOpenssl(hello: Buffer): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  context ??= createSecureContext({ cert: certificate, key: certificateKey })
  const wire = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      resolve(chunk[0] === alert ? 'refused' : null)
      done()
    },
  })
  const socket = new TLSSocket(wire, {
    isServer: true,
    secureContext: context,
    SNICallback: (name) => resolve(`name ${name}`),
  })
  socket.on('error', () => resolve('refused')).on('close', () => resolve('refused'))
  wire.push(hello)
  wire.push(null)
  const said = await promise
  socket.destroy()
  wire.destroy()
  return said
}

const read = (pieces: readonly Buffer[]): { name: string } | { reason: string } | null => {
  const hello = new ClientHello()
  try {
    for (const piece of pieces) {
      const name = hello.push(piece)
      if (name !== null) return { name }
    }
    return null
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.reason }
    throw error
  }
}

/** The first byte says where the stream is cut. */
export const hello: Target = {
  name: 'hello',
  seeds: [
    Buffer.concat([Buffer.of(9), records(helloMessage([serverName('api.example.test')]))]),
    Buffer.concat([
      Buffer.of(70),
      records(helloMessage([encryptedHello(), serverName('A.test'), extension(21, Buffer.alloc(9))]), 7, 20),
    ]),
    Buffer.concat([
      Buffer.of(0),
      records(
        helloMessage([
          extension(10, Buffer.from([0, 2, 0, 29])),
          extension(13, Buffer.from([0, 4, 4, 3, 8, 4])),
          serverName('b.test'),
        ]),
      ),
    ]),
    Buffer.concat([Buffer.of(1), records(helloMessage(null))]),
  ],
  words: [
    '\x16\x03\x01',
    '\x03\x03',
    '\x00\x00',
    '\x00\x05',
    'a.test',
    '.',
    '\x01\x00',
    '\x00\x17\x00\x00',
    '\xff\x01\x00\x01\x00',
  ],
  async run(bytes) {
    const stream = bytes.subarray(1)
    const whole = read([stream])
    const at = bytes[0] ?? 0
    equal(JSON.stringify(read([stream.subarray(0, at), stream.subarray(at)])), JSON.stringify(whole))
    if (whole === null || !('name' in whole)) return
    equal(canonicalHost(whole.name), whole.name)
    const said = await nameToOpenssl(stream)
    if (said === 'refused') return
    ok(said !== null, `${whole.name} is read, and OpenSSL reads no name`)
    equal(canonicalHost(said.slice('name '.length)), whole.name)
  },
}
