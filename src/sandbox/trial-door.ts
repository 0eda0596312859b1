// A door at which nobody is served: what a trial of the network needs of a proxy.
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A listening socket in a folder of its own. Disposing leaves nothing of either. */
export interface TrialDoor extends AsyncDisposable {
  /** Gives the socket to the uid and returns its path */
  openFor(uid: number): Promise<string>
}

/** Takes every connection and reads it to its end. */
export async function openTrialDoor(): Promise<TrialDoor> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-door-'))
  const path = join(folder, 'door')
  const server = createServer((socket) => socket.on('error', () => socket.destroy()).resume())
  server.listen(path)
  await once(server, 'listening')
  return {
    async openFor(uid) {
      await chmod(path, 0o600)
      if (process.geteuid?.() === 0) await chown(path, uid, -1)
      return path
    },
    async [Symbol.asyncDispose]() {
      await new Promise((done) => server.close(done))
      await rm(folder, { recursive: true, force: true })
    },
  }
}
