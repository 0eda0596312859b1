// A way to the engine that a test can cut, stop or speak on: the engine behind it is the real one, and does not know.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export interface CuttableEngine extends AsyncDisposable {
  /** As $DOCKER_HOST takes it */
  readonly address: string
  /** Every connection ends, and no other is taken */
  cut(): void
  /** Nothing passes any more, either way, and connections stay */
  hang(): void
  /** New connections pass again; those that hung are gone */
  resume(): void
  /** Says this, as if it were the engine's, to whoever asked with such a line, and ends what they hear */
  say(asked: RegExp, bytes: string): void
}

export const cuttableEngine = async (socketPath: string): Promise<CuttableEngine> => {
  const folder = await tempDir()
  const sockets = new Set<Socket>()
  const asking = new Map<Socket, { readonly far: Socket; line: string }>()
  let isHanging = false
  const server = createServer({ allowHalfOpen: true }, (near) => {
    sockets.add(near)
    near.on('error', () => near.destroy())
    if (isHanging) return
    const far = connect({ path: socketPath, allowHalfOpen: true })
    sockets.add(far)
    const asks = { far, line: '' }
    asking.set(near, asks)
    near.once('data', (bytes: Buffer) => (asks.line = bytes.toString('latin1').split('\r\n')[0] ?? ''))
    near.once('close', () => asking.delete(near))
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('close', () => far.destroy())
    near.pipe(far)
    far.pipe(near)
  })
  const path = join(folder.path, 'engine.sock')
  server.listen(path)
  await once(server, 'listening')
  const cut = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return {
    address: `unix://${path}`,
    cut,
    hang() {
      isHanging = true
      for (const socket of sockets) socket.unpipe().pause()
    },
    resume() {
      isHanging = false
      for (const socket of sockets) socket.destroy()
    },
    say(asked, bytes) {
      for (const [near, { far, line }] of asking) {
        if (!asked.test(line)) continue
        far.unpipe(near)
        near.end(bytes)
      }
    },
    async [Symbol.asyncDispose]() {
      cut()
      await folder[Symbol.asyncDispose]()
    },
  }
}
