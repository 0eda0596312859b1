// A door with real sockets around it: what a sandbox would say to it, what stands behind it, and what was told of it.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { openDoor } from '../../src/egress/door.ts'
import type { House } from '../../src/egress/door.ts'
import { systemLookup } from '../../src/egress/resolve.ts'
import { Slots } from '../../src/egress/slots.ts'
import type { InstanceId } from '../../src/lib/ids.ts'
import type {
  Door,
  DoorVerdict,
  EgressEvent,
  EgressGrant,
  EgressLimits,
  Interceptor,
  Screen,
} from '../../src/schema/egress.ts'
import { eventually } from './eventually.ts'
import { tempDir } from './temp-dir.ts'

/** Of a door that no test of limits opens. */
export const usualLimits: EgressLimits = {
  connections: 256,
  connectMs: 2000,
  handshakeMs: 2000,
  idleMs: 10_000,
  totalMs: 60_000,
  bytesUp: 2 ** 40,
  bytesDown: 2 ** 40,
}

/** What a test says of its door; the rest is usual. */
export interface DoorSetting {
  readonly grants: readonly Partial<EgressGrant>[]
  readonly limits?: Partial<EgressLimits>
  /** Addresses of names; without it the machine's resolvers are asked */
  readonly names?: Readonly<Record<string, readonly string[]>>
  readonly interceptor?: Interceptor
  readonly screen?: Screen
  readonly mayConnect?: () => DoorVerdict
  readonly slots?: Slots
  readonly uid?: number
}

/** A door that a test opened. */
export interface TestDoor extends AsyncDisposable {
  readonly door: Door
  readonly events: readonly EgressEvent[]
  /** A new connection that said this */
  says(text: string | Uint8Array): Socket
  /** Says it, and gives what came back until the door closed the connection */
  answers(text: string | Uint8Array): Promise<string>
  /** The same for what is refused: the answer, and the reason that was told */
  refuses(text: string | Uint8Array): Promise<{ answer: string; reason: string | null; verdict: string }>
  /** The first event of that kind, awaited */
  told(kind: EgressEvent['kind'], count?: number): Promise<EgressEvent>
}

/** Opens a door in a folder of its own. Grants are for allowed.com:443 over TLS unless they say otherwise. */
export async function testDoor(setting: DoorSetting): Promise<TestDoor> {
  const dir = await tempDir()
  const events: EgressEvent[] = []
  const shared: House = { lookup: lookupOf(setting.names), slots: setting.slots ?? new Slots(4096) }
  const grant = { host: 'allowed.com', port: 443, address: null, private: true, tls: true, reason: 'r' }
  const door = await openDoor(
    {
      server: 'it',
      instance: 'i-1' as InstanceId,
      grants: setting.grants.map((it) => ({ ...grant, ...it })),
      limits: { ...usualLimits, ...setting.limits },
    },
    {
      watch: {
        event: (event) => void events.push(event),
        mayConnect: () => setting.mayConnect?.() ?? { open: true },
      },
      interceptor: setting.interceptor ?? null,
      screen: setting.screen ?? null,
      path: join(dir.path, 'i', 'door'),
      uid: setting.uid ?? process.geteuid?.() ?? 0,
    },
    shared,
  ).catch(async (error: unknown) => {
    await dir[Symbol.asyncDispose]()
    throw error
  })
  const said = new Set<Socket>()
  const says = (text: string | Uint8Array): Socket => {
    const socket = connect({ path: door.path, allowHalfOpen: true }).on('error', () => undefined)
    said.add(socket.once('close', () => said.delete(socket)))
    socket.write(text)
    return socket
  }
  const answers = async (text: string | Uint8Array): Promise<string> => collect(says(text))
  const told = (kind: EgressEvent['kind'], count = 1): Promise<EgressEvent> =>
    eventually(() => events.filter((it) => it.kind === kind)[count - 1])
  return {
    door,
    events,
    says,
    answers,
    told,
    refuses: async (text) => {
      const before = events.filter(({ kind }) => kind === 'refused').length
      const answer = await answers(text)
      const { reason, verdict } = await told('refused', before + 1)
      return { answer, reason, verdict }
    },
    [Symbol.asyncDispose]: async () => {
      await door[Symbol.asyncDispose]()
      for (const socket of said) socket.destroy()
      await dir[Symbol.asyncDispose]()
    },
  }
}

/** What a socket gives until it is closed, as latin1; an end is answered with an end. */
export async function collect(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (socket.readableEnded) socket.end()
  else socket.once('end', () => socket.end())
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.once('close', () => resolve())
  if (!socket.closed) await promise
  return Buffer.concat(chunks).toString('latin1')
}

function lookupOf(names: DoorSetting['names']): House['lookup'] {
  if (names === undefined) return systemLookup
  return async (host) => names[host] ?? []
}

/** A TCP server whose connections a test handles, and counts. */
export interface Upstream extends AsyncDisposable {
  readonly port: number
  readonly accepted: () => number
}

/** Listens on an address of this machine. */
export async function upstream(
  handle: (socket: Socket) => void,
  where: { host?: string; port?: number } = {},
): Promise<Upstream> {
  let accepted = 0
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted++
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    handle(socket)
  })
  server.listen({ host: '127.0.0.1', port: 0, backlog: 1024, ...where })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Sends back what comes, and ends when the other side has. */
export const echo = (socket: Socket): void => void socket.pipe(socket)
