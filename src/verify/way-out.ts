// A way out for a sandbox whose profile has one: real doors, and behind them one server on this machine's loopback.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openDoor as openEgressDoor } from '../egress/door.ts'
import { Slots } from '../egress/slots.ts'
import { newInstanceId } from '../lib/ids.ts'
import type { OpenDoor } from '../sandbox/network.ts'
import type { Door, EgressEvent, EgressGrant, EgressLimits } from '../schema/egress.ts'
import type { Canaries } from './canaries.ts'
import { opening } from './opening.ts'
import { strangers } from './removal.ts'

/** Doors are made for each launch and closed with this. Every name leads to this machine, so that only judgement is between. */
export interface WayOut extends AsyncDisposable {
  /** A name that exists behind these doors alone, and the port of its server */
  readonly grant: EgressGrant
  /** Names that nobody grants, at the same server */
  readonly strangers: readonly EgressGrant[]
  /** A name that is granted for the world outside, and leads to this machine: its address is what refuses it */
  readonly inward: string
  /** A name that is granted for TLS alone, at the same server, and what a client says first: to it, and to another */
  readonly secure: {
    readonly host: string
    readonly hello: Buffer
    readonly otherHello: Buffer
    /** The same name, as a grant that lets anything be said */
    readonly unheard: EgressGrant
  }
  /** What the server says to whoever connects and asks */
  readonly greeting: string
  /** UDP port on 127.0.0.1 of a name server that has a record for every question */
  readonly resolverPort: number
  openDoor(grants: readonly EgressGrant[]): OpenDoor
  /** A door that leads where these grants say, by this machine's resolver, and tells what happens at it. Disposing closes it */
  openRealDoor(grants: readonly EgressGrant[], tell: (event: EgressEvent) => void): RealDoor
}

export interface RealDoor extends AsyncDisposable {
  readonly open: OpenDoor
}

const nothing = Buffer.alloc(0)

const limits: EgressLimits = {
  connections: 64,
  connectMs: 2000,
  handshakeMs: 2000,
  idleMs: 10_000,
  totalMs: 60_000,
  bytesUp: 1_048_576,
  bytesDown: 1_048_576,
}

/** Starts both servers. */
export const openWayOut = async ({ word, folder }: Canaries): Promise<WayOut> => {
  const greeting = `hello from ${word}`
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${greeting.length}\r\nConnection: close\r\n\r\n${greeting}`
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy()).once('data', () => socket.end(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const resolver = createSocket('udp4')
  resolver.on('message', (question, { port, address }) => resolver.send(recordFor(question), port, address))
  resolver.bind(0, '127.0.0.1')
  await once(resolver, 'listening')
  const doors: Door[] = []
  const { port } = server.address() as AddressInfo
  const grant = {
    host: 'granted.sallyport.test',
    port,
    address: null,
    private: true,
    tls: false,
    reason: 'a verification',
  }
  const others = strangers.map((host) => ({ ...grant, host }))
  const inward = { ...grant, host: 'inward.sallyport.test', private: false }
  const secure = { ...grant, host: 'secure.sallyport.test', tls: true }
  const [hello, otherHello] = await Promise.all(
    [secure.host, 'other.sallyport.test'].map((host) => opening({ host, port, isTls: true })),
  )
  const house = { lookup: () => Promise.resolve(['127.0.0.1']), slots: new Slots(256) }
  return {
    grant,
    strangers: others,
    inward: inward.host,
    secure: {
      host: secure.host,
      hello: hello ?? nothing,
      otherHello: otherHello ?? nothing,
      unheard: { ...secure, tls: false },
    },
    greeting,
    resolverPort: resolver.address().port,
    openDoor: (grants) => async (user) => {
      const instance = newInstanceId()
      const door = await openEgressDoor(
        { server: 'probes', instance, grants: [...grants, inward, secure], limits },
        {
          watch: { event: () => undefined, mayConnect: () => ({ open: true }) },
          interceptor: null,
          screen: null,
          path: join(folder, instance, 'door'),
          uid: user.uid,
        },
        house,
      )
      doors.push(door)
      return door.path
    },
    openRealDoor(grants, tell) {
      const instance = newInstanceId()
      const opened: Door[] = []
      return {
        async open({ uid }) {
          const door = await openEgressDoor(
            { server: 'probes', instance, grants, limits },
            {
              watch: { event: tell, mayConnect: () => ({ open: true }) },
              interceptor: null,
              screen: null,
              path: join(folder, instance, 'door'),
              uid,
            },
          )
          opened.push(door)
          return door.path
        },
        async [Symbol.asyncDispose]() {
          for (const door of opened.splice(0)) await door[Symbol.asyncDispose]()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      for (const door of doors) await door[Symbol.asyncDispose]()
      server.close()
      resolver.close()
      await once(server, 'close')
    },
  }
}

/** One address record in answer to any question: the header says so, and nobody reads further. */
const recordFor = (question: Buffer): Buffer => {
  const reply = Buffer.from(question)
  reply.writeUInt16BE(0x8180, 2)
  reply.writeUInt16BE(1, 6)
  return Buffer.concat([reply, Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1])])
}
