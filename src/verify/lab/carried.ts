// A credential on its way: a door that puts it in for one host, that host, another one, and who says its name at either.
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect as dial, createServer as listen, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { openDoor } from '../../egress/door.ts'
import { createInterceptor } from '../../egress/intercept/interceptor.ts'
import { createSigner } from '../../egress/intercept/signer.ts'
import { Slots } from '../../egress/slots.ts'
import { holdsWithin, within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { UndoStack } from '../../lib/undo-stack.ts'
import type { SandboxSecrets } from '../../schema/credentials.ts'
import { alwaysOpen, ample, doorsShut, isOfTime } from './behind.ts'
import { ampleMs } from './patience.ts'

const [named, other] = ['api.sallyport.test', 'other.sallyport.test'] as const
const shut = { open: false, reason: doorsShut } as const

/** Names in TLS -> why the door, and whoever puts the value in, end the connection. */
const handshakes = [
  ['', 'sni-missing'],
  [other, 'sni-mismatch'],
] as const

/** Who holds the credential: a sandbox whose entry names that host, certified as that file says. */
export type Holding = (host: { host: string; port: number; caFile: string }) => SandboxSecrets

/** What the hosts heard, and why the connection ended where somebody ended it. */
interface Said {
  readonly heard: string
  readonly why: string | null
}

/**
 * Returns where and when the value arrived and should not have, or the other way round. That nothing came shows nothing by itself:
 * the door must have ended it, and for that reason. Throws where a connection has no end, or one for want of time.
 */
export const astrayOnItsWay = async (
  folder: string,
  hold: Holding,
  lease: (secrets: SandboxSecrets) => Promise<Disposable>,
  value: string,
): Promise<readonly string[]> => {
  const instance = newInstanceId()
  const caFile = join(folder, `${instance}.pem`)
  const [host, impostor] = await Promise.all([
    createSigner('host', [named, other]),
    createSigner('impostor', [named]),
  ])
  await writeFile(caFile, host.certificate)
  const [itself, another, posing] = await Promise.all([
    host.contextFor(named),
    host.contextFor(other),
    impostor.contextFor(named),
  ])
  let own = itself
  const heard: string[] = []
  const server = createServer(
    {
      SNICallback: (name, done) => done(null, name === named ? own : another),
    },
    (socket) =>
      socket
        .on('error', () => socket.destroy())
        .on('data', (said: Buffer) => {
          heard.push(said.toString('latin1'))
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
        }),
  ).listen(0, '127.0.0.1')
  server.on('tlsClientError', () => undefined)
  await using made = new UndoStack()
  made.defer(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  using secrets = hold({ host: named, port, caFile })
  const interceptor = await createInterceptor({ server: 'probes', instance, life: 'call', ...secrets })
  const grant = { host: named, port, address: null, private: true, tls: true, reason: 'a verification' }
  let asks = Infinity
  const ends: (string | null)[] = []
  const door = await openDoor(
    { server: 'probes', instance, grants: [grant, { ...grant, host: other }], limits: ample },
    {
      watch: {
        event: ({ kind, reason }) => void (kind !== 'opened' && ends.push(reason)),
        mayConnect: () => (asks-- > 0 ? alwaysOpen() : shut),
      },
      interceptor,
      screen: secrets.screen,
      path: join(folder, instance, 'door'),
      uid: process.geteuid?.() ?? -1,
    },
    { lookup: () => Promise.resolve(['127.0.0.1']), slots: new Slots(8) },
  )
  const [placeholder = ''] = secrets.swap.placeholders
  const atDoor = (to: string): Socket => {
    const socket = dial(door.path)
    socket.write(`SP1 connect ${to} ${port}\n`)
    return socket
  }
  /** Says what stands for it in a header, and returns what the hosts heard until the end. */
  const tell = async (to: string, words: string, servername: string, socket: Socket): Promise<string> => {
    heard.length = 0
    const ca = [interceptor.certificate, host.certificate]
    const whoever = servername === to ? {} : { checkServerIdentity: () => undefined }
    const secured = connect({ socket, servername, ca, ...whoever }, () =>
      secured.write(
        `GET / HTTP/1.1\r\nHost: ${to}:${port}\r\nAuthorization: Bearer ${words}\r\nConnection: close\r\n\r\n`,
      ),
    )
    const closed = new Promise((resolve) => secured.once('close', resolve))
    secured.on('error', () => secured.destroy()).resume()
    const late = (): Error => new Error(`a connection to ${to} was not over within ${ampleMs} ms`)
    await within(closed, ampleMs, late).finally(() => secured.destroy())
    return heard.join('')
  }
  /** Says it at the door, which tells of each connection how it ended. */
  const say = async (to: string, words = placeholder, servername = to): Promise<Said> => {
    const before = ends.length
    const heard = await tell(to, words, servername, atDoor(to))
    if (!(await holdsWithin(() => ends.length > before, ampleMs)))
      throw new Error(`the door did not say how a connection to ${to} ended within ${ampleMs} ms`)
    return { heard, why: ends.at(-1) ?? null }
  }
  /** Says it in TLS for that name where it is put in, past whoever looks at TLS before, and returns why it was cut. */
  const cutFor = async (servername: string): Promise<Said> => {
    const reasons: string[] = []
    const reach = async (): Promise<Socket> => {
      const socket = dial(port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }
    const target = { ...grant, grant, server: 'probes', instance, connection: 'e-0' }
    const log = {
      swapped: () => undefined,
      redacted: () => undefined,
      cut: (why: string) => reasons.push(why),
    }
    const served = Promise.withResolvers<void>()
    await using ending = new UndoStack()
    const beyond = listen((client) => served.resolve(interceptor.serve(client, target, reach, log)))
    ending.defer(() => beyond.close())
    beyond.listen(0, '127.0.0.1')
    await once(beyond, 'listening')
    const own = dial((beyond.address() as AddressInfo).port, '127.0.0.1')
    const heard = await tell(named, placeholder, servername, own)
    await within(served.promise, ampleMs, () => new Error('whoever puts it in was not asked'))
    return { heard, why: reasons[0] ?? null }
  }
  const found: string[] = []
  /** `wanted` is what the hosts heard, or why they did not. */
  const expects = (when: string, { heard, why }: Said, wanted: string): void => {
    if (heard === '' && isOfTime(why)) throw new Error(`${when}: not tried, ${why}`)
    const stopped = why?.startsWith('certificate:') === true ? 'certificate' : (why ?? 'nothing')
    const came = heard.includes(value) ? 'value' : heard === '' ? stopped : 'words'
    if (came !== wanted) found.push(`${when}: ${came} in place of ${wanted}`)
  }
  try {
    expects('on its way before a call', await say(named), 'credential-no-lease')
    const leased = await lease(secrets)
    // First, since what was believed once may be taken up again
    own = posing
    expects('on its way to who is not certified as its host', await say(named), 'certificate')
    own = itself
    expects('on its way in a call', await say(named), 'value')
    expects('on its way to another host', await say(other), 'words')
    expects('a request without it, to its host', await say(named, 'none'), 'words')
    for (const [servername, why] of handshakes) {
      const which = servername || 'no name'
      expects(`in TLS for ${which}`, await say(named, placeholder, servername), why)
      expects(`where it is put in, TLS for ${which}`, await cutFor(servername), why)
    }
    expects('where it is put in, TLS for its host', await cutFor(named), 'value')
    asks = 1
    expects('once the doors were shut, on its way', await say(named), doorsShut)
    asks = Infinity
    leased[Symbol.dispose]()
    expects('on its way after a call', await say(named), 'credential-no-lease')
    return found
  } finally {
    await door[Symbol.asyncDispose]()
    await rm(caFile, { force: true })
  }
}
