// What one container is given of the supervisor's own: the socket that init connects to, and the files that are written for it.
import { chmod, chown, open, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { makeFolder } from '../../lib/folder.ts'
import type { DataFile } from '../spec.ts'

export interface InstanceFolder extends AsyncDisposable {
  /** Host path of the control socket */
  readonly control: string
  /** Host path of each file, by its target in the sandbox */
  readonly files: ReadonlyMap<string, string>
  /** Resolves with init's end of the control channel: the first to connect, after whom nobody can */
  readonly connected: Promise<Socket>
}

/**
 * Makes the folder, its files and its socket, which listens. Only the daemon can pass it, and the engine binds what is in it.
 *
 * Where one of them can't be made nothing listens, and the folder is gone unless that fails, too.
 */
export const makeInstanceFolder = async (
  path: string,
  files: readonly DataFile[],
  uid: number,
): Promise<InstanceFolder> => {
  try {
    return await fill(path, files, uid)
  } catch (error) {
    await rm(path, { recursive: true, force: true }).catch(() => undefined)
    throw error
  }
}

const fill = async (path: string, files: readonly DataFile[], uid: number): Promise<InstanceFolder> => {
  makeFolder(path, 0o700)
  const written = new Map<string, string>()
  for (const [index, { target, content, mode }] of files.entries()) {
    const file = join(path, `${index}`)
    await writeFile(file, content, { mode: 0o600, flag: 'wx' })
    await chmod(file, mode)
    written.set(target, file)
  }
  const listener = await listen(path, 'control', uid)
  return {
    control: join(path, 'control'),
    files: written,
    connected: listener.connected,
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]()
      await rm(path, { recursive: true, force: true })
    },
  }
}

// Through the folder's descriptor: a path of any length is short there.
const listen = async (
  folder: string,
  name: string,
  uid: number,
): Promise<AsyncDisposable & Pick<InstanceFolder, 'connected'>> => {
  const handle = await open(folder)
  const { promise: connected, resolve } = Promise.withResolvers<Socket>()
  let first: Socket | null = null
  const server = createServer((socket) => {
    first = socket
    server.close()
    resolve(socket.on('error', () => {}))
  })
  server.maxConnections = 1
  const { promise: listening, resolve: ready, reject } = Promise.withResolvers<void>()
  server.once('error', reject).listen(`/proc/self/fd/${handle.fd}/${name}`, () => ready())
  const close = async (): Promise<void> => {
    // Its name goes with it, so the folder's descriptor has to stay until then.
    if (server.listening) server.close()
    // An init that connects and ends at once is met by nobody, and its connection would stay.
    first?.destroy()
    await handle.close()
  }
  try {
    await listening
    await chmod(join(folder, name), 0o600)
    if (uid !== process.geteuid?.()) await chown(join(folder, name), uid, -1)
  } catch (error) {
    await close()
    throw error
  }
  return { connected, [Symbol.asyncDispose]: close }
}
