// A door that is closed while somebody is connected through it: neither end of that connection outlives it.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { openDoor } from '../../egress/door.ts'
import { Slots } from '../../egress/slots.ts'
import { within } from '../../lib/deadline.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { UndoStack } from '../../lib/undo-stack.ts'
import { alwaysOpen, ample } from './behind.ts'
import { ampleMs } from './patience.ts'

const host = 'closed.sallyport.test'

/**
 * Opens a door, connects through it, closes it, and returns what still goes through; nothing where all is over. Throws where none of
 * that is to be seen in time: a machine may be that busy, though by its limits a connection has longer.
 */
export const outliving = async (folder: string): Promise<string> => {
  const upstream = Promise.withResolvers<Socket>()
  const server = createServer((socket) => upstream.resolve(socket.on('error', () => undefined).resume()))
  await using end = new UndoStack()
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
  const late = (what: string) => () => new Error(`${what} within ${ampleMs} ms`)
  const outside = await within(upstream.promise, ampleMs, late('nothing was dialled'))
  end.defer(() => void outside.destroy())
  const closes = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve))
  const over = Promise.all([inside, outside].map(closes)).then(() => '')
  await within(Promise.resolve(door[Symbol.asyncDispose]()), ampleMs, late('the door was not closed'))
  const through = once(inside, 'data').then(() => 'what is said outside comes in')
  through.catch(() => undefined) // it ended
  outside.write('x')
  return await within(Promise.race([over, through]), ampleMs, late('a connection through it was not over'))
}
