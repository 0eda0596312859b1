// A way out for a sandbox whose profile has one: real doors, and behind them one server on this machine's loopback.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openDoor as openEgressDoor } from '../../egress/door.ts'
import { Slots } from '../../egress/slots.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { UndoStack } from '../../lib/undo-stack.ts'
import type { OpenDoor } from '../../sandbox/network.ts'
import type { Door, EgressEvent, EgressGrant, EgressLimits, Screen } from '../../schema/egress.ts'
import {
  alwaysOpen,
  ample,
  behind,
  type Behind,
  besides,
  cutAtEnd,
  lookup,
  nameAt,
  scant,
  shutting,
  strangers,
} from './behind.ts'
import type { Canaries } from './canaries.ts'
import { outliving } from './door-end.ts'
import { opening } from './opening.ts'
import { type CanarySecret, leaseCanary } from './secrets.ts'

/** Doors are made for each launch and closed with this. Every name leads to this machine, so that only judgement is between. */
export interface WayOut extends AsyncDisposable {
  /** A name that exists behind these doors alone, and the port of its server */
  readonly grant: EgressGrant
  /** What every door grants besides, at the same server */
  readonly behind: Behind
  /** What a client of TLS says first to the host that is granted for TLS alone, and to another */
  readonly hello: Buffer
  readonly otherHello: Buffer
  /** What the server says to whoever connects and asks */
  readonly greeting: string
  /** UDP port on 127.0.0.1 of a name server that has a record for every question */
  readonly resolverPort: number
  /** Doors for a launch with these grants, and the same with one judgement less each */
  doors(grants: readonly EgressGrant[]): LabDoors
  /** A credential that no host of these doors is to have */
  readonly secret: CanarySecret
  /** What was heard so far at the door with this path */
  readonly heardAt: (door: string) => Heard
  /** What goes on of a connection whose door is closed; nothing where it is over */
  readonly outliving: () => Promise<string>
  /** A door for a launch that is granted all that the pattern says as well */
  readonly doorFor: (pattern: string) => OpenDoor
  /** A door that leads where these grants say, by this machine's resolver, and tells what happens at it. Disposing closes it */
  openRealDoor(grants: readonly EgressGrant[], tell: (event: EgressEvent) => void): RealDoor
}

/** Ways out that differ in what is judged there. */
export interface LabDoors {
  readonly own: OpenDoor
  /** There for hosts that nobody granted too */
  readonly forAll: OpenDoor
  /** There for names beside a granted pattern too */
  readonly beside: OpenDoor
  /** Nobody listens to what is said on a port of TLS */
  readonly unheard: OpenDoor
  /** Names lead inwards */
  readonly inward: OpenDoor
  /** With budgets that are soon used up, and the same with those that nothing comes near but silence */
  readonly scant: OpenDoor
  readonly generous: OpenDoor
  /** Whose events are kept, and the same with nobody who keeps them */
  readonly heard: OpenDoor
  readonly unheardOf: OpenDoor
  /** Of a server that has a credential */
  readonly screened: OpenDoor
  /** That is shut for some of its names, from some moment on */
  readonly shutting: OpenDoor
}

/** What is known of one door of a launch. */
export interface Heard {
  /** Why connections were ended there: each reason, and with its host, and its port */
  readonly reasons: readonly string[]
  /** Names that it had looked up */
  readonly lookedUp: readonly string[]
}

/** How a door differs from one that lets through whatever is granted. */
interface Ways {
  readonly limits: EgressLimits
  readonly screen: Screen | null
  readonly isHeard: boolean
  readonly isShutting: boolean
}

export interface RealDoor extends AsyncDisposable {
  readonly open: OpenDoor
}

const nothing = Buffer.alloc(0)
const nothingHeard: Heard = { reasons: [], lookedUp: [] }

/** A path whose answer is long, bytes. */
export const longPath = '/long'
const longBytes = 8192

/** Silence that is waited for where nothing else is to come, ms */
const silenceMs = 5000

/** For a host of the world outside, ms: less than whoever asks for it waits, so that what the door says of it is heard. */
const knockMs = 5000

/** Words that the server says nothing to; nor does it to a field that was for the proxy. */
const unanswered = 'x'.charCodeAt(0)

/** Starts both servers; where it is asked to end meanwhile, neither stays. */
export const openWayOut = async ({ word, folder }: Canaries, signal: AbortSignal): Promise<WayOut> => {
  const greeting = `hello from ${word}`
  await using undo = new UndoStack()
  const { port } = undo.use(await startHost(greeting))
  const resolver = undo.use(await startResolver())
  const doors: Door[] = []
  const grant = {
    host: 'granted.sallyport.test',
    port,
    address: null,
    private: true,
    tls: false,
    reason: 'a verification',
  }
  const more = behind(grant)
  const { secure, inwards } = more
  const [hello = nothing, otherHello = nothing] = await Promise.all(
    [secure.host, 'other.sallyport.test'].map((host) => opening({ host, port, isTls: true })),
  )
  const secret = undo.use(await leaseCanary(folder, signal))
  const slots = new Slots(256)
  undo.defer(async () => {
    for (const door of doors) await door[Symbol.asyncDispose]()
  })
  const heard = new Map<string, Heard>()
  const doorFor =
    (
      grants: readonly EgressGrant[],
      { limits = ample, screen = null, isHeard = true, isShutting = false }: Partial<Ways> = {},
    ): OpenDoor =>
    async (user) => {
      const instance = newInstanceId()
      const path = join(folder, instance, 'door')
      const reasons: string[] = []
      const lookedUp: string[] = []
      heard.set(path, { reasons, lookedUp })
      const lead = lookup()
      const door: Door = await openEgressDoor(
        { server: 'probes', instance, grants: [...grants, ...Object.values(more)], limits },
        {
          watch: {
            event: (event) => {
              const { reason, host, port } = event
              if (reason !== null && isHeard)
                reasons.push(reason, `${reason} ${host}`, `${reason} ${host}:${port}`)
              if (isShutting) cutAtEnd(door, more, event)
            },
            mayConnect: isShutting ? shutting(more) : alwaysOpen,
          },
          interceptor: null,
          screen,
          path,
          uid: user.uid,
        },
        {
          lookup: (host, signal) => {
            lookedUp.push(host)
            return lead(host, signal)
          },
          slots,
        },
      )
      doors.push(door)
      return door.path
    }
  const all = undo.move()
  return {
    grant,
    behind: more,
    hello,
    otherHello,
    greeting,
    resolverPort: resolver.port,
    doors: (grants) => ({
      own: doorFor(grants),
      forAll: doorFor([...grants, ...strangers.map((host) => ({ ...grant, host }))]),
      beside: doorFor([...grants, ...besides.map((host) => ({ ...grant, host }))]),
      unheard: doorFor([...grants, { ...secure, tls: false }]),
      inward: doorFor([...grants, { ...inwards, host: nameAt('127.0.0.1'), private: true }]),
      scant: doorFor(grants, { limits: scant }),
      generous: doorFor(grants, { limits: { ...ample, idleMs: silenceMs } }),
      heard: doorFor(grants),
      unheardOf: doorFor(grants, { isHeard: false }),
      screened: doorFor(grants, { screen: secret.screen }),
      shutting: doorFor(grants, { isShutting: true }),
    }),
    secret,
    heardAt: (door) => heard.get(door) ?? nothingHeard,
    outliving: () => outliving(folder),
    doorFor: (host) => doorFor([grant, { ...grant, host }]),
    openRealDoor: (grants, tell) => realDoor(folder, grants, tell),
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  }
}

/** Answers HTTP, whatever it is asked, but for what is not to be answered. */
const startHost = async (greeting: string): Promise<AsyncDisposable & { readonly port: number }> => {
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${greeting.length}\r\nConnection: close\r\n\r\n${greeting}`
  const server = createServer((socket) => {
    const tell = (asked: Buffer): void => {
      if (asked[0] !== unanswered && !asked.includes('Proxy-'))
        socket.end(asked.includes(longPath) ? answer.padEnd(longBytes) : answer)
    }
    socket.on('error', () => socket.destroy()).on('data', tell)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

const startResolver = async (): Promise<Disposable & { readonly port: number }> => {
  const resolver = createSocket('udp4')
  resolver.on('message', (question, { port, address }) => resolver.send(recordFor(question), port, address))
  resolver.bind(0, '127.0.0.1')
  await once(resolver, 'listening')
  return { port: resolver.address().port, [Symbol.dispose]: () => void resolver.close() }
}

const realDoor = (
  folder: string,
  grants: readonly EgressGrant[],
  tell: (event: EgressEvent) => void,
): RealDoor => {
  const instance = newInstanceId()
  const opened: Door[] = []
  return {
    async open({ uid }) {
      const door = await openEgressDoor(
        { server: 'probes', instance, grants, limits: { ...ample, connectMs: knockMs } },
        {
          watch: { event: tell, mayConnect: alwaysOpen },
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
}

/** One address record in answer to any question: the header says so, and nobody reads further. */
const recordFor = (question: Buffer): Buffer => {
  const reply = Buffer.from(question)
  reply.writeUInt16BE(0x8180, 2)
  reply.writeUInt16BE(1, 6)
  return Buffer.concat([reply, Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1])])
}
