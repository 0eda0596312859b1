// The proxy's end of a sandbox's door, small and real: reads the first line, and connects to servers of the test.
import { chmodSync, chownSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { OpenDoor } from '../../src/sandbox/network.ts'
import { eventually } from './eventually.ts'
import { tempDir } from './temp-dir.ts'

/** What the first line of a connection said. */
export interface DoorCall {
  readonly line: string
  readonly socket: Socket
}

/** A door with what came through it. Disposing ends every connection and removes the socket. */
export interface TestDoor extends AsyncDisposable {
  readonly path: string
  /** First lines, in the order in which they came */
  readonly lines: readonly string[]
  readonly notices: readonly string[]
  /** Waits until a notice matches, and returns it */
  noticed(pattern: RegExp): Promise<string>
  /** As a launch takes it */
  readonly openDoor: OpenDoor
  /** Gives the socket to the uid */
  openFor(uid: number): string
  /** Accepts nobody any more */
  close(): void
}

/** Serves `SP1 connect` by the handler, `SP1 notices` by keeping the lines, and closes on anything else. */
export const openTestDoor = async (
  serve: (call: DoorCall) => void = ({ socket }) => socket.destroy(),
): Promise<TestDoor> => {
  const folder = await tempDir()
  const path = join(folder.path, 'door')
  const sockets = new Set<Socket>()
  const lines: string[] = []
  const notices: string[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    void firstLine(socket).then((line) => {
      if (line === null) return socket.destroy()
      lines.push(line)
      if (line === 'SP1 notices') return keepLines(socket, notices)
      return serve({ line, socket })
    })
  })
  server.listen({ path, backlog: 511 })
  await once(server, 'listening')
  const openFor = (uid: number): string => {
    chmodSync(path, 0o600)
    if (process.getuid?.() === 0) chownSync(path, uid, -1)
    return path
  }
  return {
    path,
    lines,
    notices,
    openFor,
    noticed: async (pattern) => {
      await eventually(() => notices.some((line) => pattern.test(line))).catch((cause: unknown) => {
        throw new Error(`no notice is ${pattern}, there are: ${notices.join(', ')}`, { cause })
      })
      return notices.find((line) => pattern.test(line)) ?? ''
    },
    openDoor: ({ uid }) => Promise.resolve(openFor(uid)),
    close: () => void server.close(),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** Connects each `SP1 connect host port` to the port of 127.0.0.1 that the table gives, and resets what it does not have. */
export const forwardTo =
  (table: Readonly<Record<string, number>>) =>
  ({ line, socket }: DoorCall): void => {
    const [, verb, host, port] = line.split(' ')
    const wild = `*${host?.slice(host.indexOf('.'))}`
    const to = verb === 'connect' ? (table[`${host}:${port}`] ?? table[`${wild}:${port}`]) : undefined
    if (to === undefined) return void socket.destroy()
    const upstream = connect({ host: '127.0.0.1', port: to, allowHalfOpen: true })
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
    socket.pipe(upstream)
    upstream.pipe(socket)
    return
  }

/** The first line of a stream, with what follows put back; null where there is none. */
const firstLine = async (socket: Socket): Promise<string | null> => {
  let held = Buffer.alloc(0)
  for (;;) {
    const chunk = (socket.read() ?? Buffer.alloc(0)) as Buffer
    held = Buffer.concat([held, chunk])
    const end = held.indexOf(0x0a)
    if (end >= 0) {
      if (held.length > end + 1) socket.unshift(held.subarray(end + 1))
      return held.toString('latin1', 0, end)
    }
    if (held.length > 300 || socket.readableEnded || socket.destroyed) return null
    const { promise, resolve } = Promise.withResolvers<void>()
    for (const event of ['readable', 'end', 'close']) socket.once(event, resolve)
    await promise
    for (const event of ['readable', 'end', 'close']) socket.off(event, resolve)
  }
}

const keepLines = (socket: Socket, lines: string[]): void => {
  let rest = ''
  socket.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString('latin1')).split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
}
