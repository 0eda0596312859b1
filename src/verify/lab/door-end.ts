// A door that is closed while somebody is connected through it: neither end of that connection outlives it.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { openDoor } from '../../egress/door.ts'
import { Slots } from '../../egress/slots.ts'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { alwaysOpen, ample } from './behind.ts'

/** To be connected, and for both ends to be gone: far less than a connection has by its limits */
const patienceMs = 3000
const host = 'closed.sallyport.test'

/** Opens a door, connects through it, closes it, and returns what goes on; nothing where all is over. */
export const outliving = async (folder: string): Promise<readonly string[]> => {
  const upstream = Promise.withResolvers<Socket>()
  const server = createServer((socket) => upstream.resolve(socket.on('error', () => undefined).resume()))
  await using end = new AsyncDisposableStack()
  end.defer(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const grant = { host, port, address: null, private: true, tls: false, reason: 'a verification' }
  const instance = newInstanceId()
  const door = await openDoor(
    { server: 'probes', instance, grants: [grant], limits: ample },
    {
      watch: { event: () => undefined, mayConnect: alwaysOpen },
      interceptor: null,
      screen: null,
      path: join(folder, instance, 'door'),
      uid: process.geteuid?.() ?? -1,
    },
    { lookup: () => Promise.resolve(['127.0.0.1']), slots: new Slots(8) },
  )
  end.use(door)
  const inside = connect(door.path).on('error', () => undefined)
  end.defer(() => void inside.destroy())
  inside.resume().write(`SP1 connect ${host} ${port}\nx`)
  const late = (what: string) => () => new Error(`${what} within ${patienceMs} ms`)
  const outside = await within(upstream.promise, patienceMs, late('nothing was dialled'))
  end.defer(() => void outside.destroy())
  const isOver = async (what: string, over: PromiseLike<unknown>): Promise<readonly string[]> =>
    within(Promise.resolve(over), patienceMs, late(what)).then(
      () => [],
      () => [what],
    )
  const closes = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve))
  const [insideOver, outsideOver] = [closes(inside), closes(outside)]
  const closed = door[Symbol.asyncDispose]()
  const found = await Promise.all([
    isOver('the connection inside', insideOver),
    isOver('the connection outside', outsideOver),
    isOver('the door', closed),
  ])
  return found.flat()
}
