// A control socket with a service of the test's own, and a raw client that sees every line.
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Allowance } from '../../src/rpc/allowance.ts'
import { serveConnection } from '../../src/rpc/connection.ts'
import { defaultListenLimits, type ListenLimits } from '../../src/rpc/listen.ts'
import type { Service } from '../../src/rpc/answering.ts'
import { silent } from '../../src/lib/logger.ts'
import { tempDir } from './temp-dir.ts'

const principal = { kind: 'uid', id: '7', attributes: { uid: 7, gid: 7, pid: 7 } } as const

/** Serves `service` on a socket of a temporary folder, to connections of one uid. */
export async function serveOn(
  service: Service,
  more: Partial<ListenLimits> = {},
): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await tempDir()
  const path = join(folder.path, 's')
  const sockets = new Set<Socket>()
  const limits = { ...defaultListenLimits, ...more }
  const allowance = new Allowance(limits)
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket)
    const share = allowance.open()
    socket.once('close', () => share[Symbol.dispose]())
    serveConnection(socket, { service, principal, limits, share, log: silent })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** A peer that writes bytes and reads lines. */
export interface RawPeer extends AsyncDisposable {
  readonly socket: Socket
  send(text: string): void
  /** The next line, or null when the other side has ended */
  line(): Promise<string | null>
}

/** Connects without any client of ours in between. */
export async function rawPeer(path: string): Promise<RawPeer> {
  const socket = connect({ path, allowHalfOpen: true })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('error', () => socket.destroy())
  const lines = createInterface({ input: socket, crlfDelay: Infinity })[Symbol.asyncIterator]()
  return {
    socket,
    send: (text) => void socket.write(text),
    line: async () => {
      const next = await lines.next()
      return next.done === true ? null : next.value
    },
    async [Symbol.asyncDispose]() {
      socket.destroy()
    },
  }
}
