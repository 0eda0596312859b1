// A door at which nobody is served: what a trial of the network needs of a proxy.
import { chmod, chown, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { errnoOf, isShortage } from '../../lib/missing.ts'
import { maxSocketPath } from '../../lib/socket-path.ts'
import { pidNamespace } from '../daemon-mark.ts'
import { identify } from '../proof.ts'

/** A listening socket in a folder of its own. Disposing leaves nothing of either. */
export interface TrialDoor extends AsyncDisposable {
  /** Gives the socket to the uid and returns its path */
  openFor(uid: number): Promise<string>
}

/**
 * Takes every connection and reads it to its end. What a process left that was killed in a trial of its own is removed. Throws
 * ERR_SANDBOX_SETUP where the temporary folder takes none, or lies too deep for the path of a socket.
 */
export async function openTrialDoor(): Promise<TrialDoor> {
  const swept = sweep()
  let folder: string | null = null
  try {
    // Init stages through no link.
    folder = await mkdtemp(join(await realpath(tmpdir()), `${prefix()}${nameOf(process.pid)}-`))
    return await listenIn(folder, swept)
  } catch (thrown) {
    if (folder !== null) await rm(folder, { recursive: true, force: true })
    await swept
    if (isShortage(thrown)) throw thrown
    const message = `the temporary folder ${tmpdir()} takes no socket (${errnoOf(thrown) ?? String(thrown)})`
    throw new SallyportError('ERR_SANDBOX_SETUP', message, {}, { cause: thrown })
  }
}

async function listenIn(folder: string, swept: Promise<void>): Promise<TrialDoor> {
  const path = join(folder, 'door')
  if (Buffer.byteLength(path) > maxSocketPath)
    throw Object.assign(new Error(`${path} is too long for a socket`), { code: 'ENAMETOOLONG' })
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
      await swept
    },
  }
}

/** A pid means something only within one pid namespace. Short, since the kernel takes 107 bytes of a socket's path. */
const prefix = (): string => `sallyport-door-${short(pidNamespace().replaceAll(/\D/g, ''))}-`

/** Names a process of this boot, for good; null where there is none. */
const nameOf = (pid: number): string | null => {
  const found = identify(pid)
  return found === null ? null : `${short(pid)}-${short(found.startTime)}`
}

const short = (number: number | string): string => Number(number).toString(36)

/** Removes folders whose processes are dead; those of other users stay, since they can't be removed. */
async function sweep(): Promise<void> {
  const begin = prefix()
  const names = await readdir(tmpdir()).catch((): string[] => [])
  for (const name of names.filter((one) => one.startsWith(begin))) {
    const [pid = '', startTime = ''] = name.slice(begin.length).split('-')
    if (nameOf(Number.parseInt(pid, 36)) === `${pid}-${startTime}`) continue
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined)
  }
}
