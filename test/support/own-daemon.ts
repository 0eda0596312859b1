// A daemon of the test's own making: it greets, and else answers what the test says, or nothing at all.
import { mkdir } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { protocolId } from '../../src/rpc/protocol.ts'
import { runtimePaths } from '../../src/rpc/runtime-dir.ts'
import { tempDir } from './temp-dir.ts'

/** One request, as it came. */
export interface Asked {
  readonly id: number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly socket: Socket
  /** Answers it with these members beside `jsonrpc` and `id` */
  readonly reply: (members: object) => void
}

export interface OwnDaemon extends AsyncDisposable {
  readonly runtimeDir: string
  /** The hosts' socket, and the operator's */
  readonly sockets: readonly string[]
}

/** Listens at both doors. `answer` is asked about everything; the greeting is given for it unless `greets` is false. */
export async function ownDaemon(
  answer: (asked: Asked) => unknown,
  { greets = true } = {},
): Promise<OwnDaemon> {
  const folder = await tempDir()
  const { hostSocket, operatorSocket } = runtimePaths(folder.path)
  const open = new Set<Socket>()
  const serve = (socket: Socket): void => {
    open.add(socket)
    socket.on('error', () => undefined).once('close', () => open.delete(socket))
    // Which tells of the socket's errors, too.
    const lines = createInterface({ input: socket }).on('error', () => undefined)
    lines.on('line', (line) => {
      const { id, method, params } = JSON.parse(line) as Asked
      const reply = (members: object): void =>
        void socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...members })}\n`)
      if (greets && method === 'sallyport/hello')
        reply({ result: { protocol: protocolId, principal: { id: '7' } } })
      else answer({ id, method, params, socket, reply })
    })
  }
  const servers: Server[] = []
  for (const path of [hostSocket, operatorSocket]) {
    await mkdir(dirname(path), { mode: 0o700 })
    const server = createServer(serve)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(path, resolve))
  }
  return {
    runtimeDir: folder.path,
    sockets: [hostSocket, operatorSocket],
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close()
      for (const socket of open) socket.destroy()
      await folder[Symbol.asyncDispose]()
    },
  }
}
