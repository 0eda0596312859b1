// What a verification plants on the host for the probes to look for: files, sockets, variables. Gone with it.
import { once } from 'node:events'
import { chmod, mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Named, onNamed } from '../../config/named-file.ts'
import { newInstanceId } from '../../lib/ids.ts'
import { errnoOf } from '../../lib/missing.ts'
import { ground } from './ground.ts'
import type { Janitor } from './janitor.ts'
import { plantPeople, plantProject } from './people.ts'
import { placeProgram } from './runnable.ts'

/** Where each canary is. All may be read by everybody, so that only the sandbox can be what hides them. */
export interface Canaries {
  readonly word: string
  /** Folder in the daemon's home */
  readonly home: string
  /** Folder in /tmp */
  readonly folder: string
  /** Folder of Sallyport's own: where this run keeps its state, shut to others but not hidden */
  readonly state: string
  /** Another such folder, which anybody may read: what it is alone keeps it from servers */
  readonly own: string
  /** Folder that anybody may write to, with what makes the host run something in it: see `plantProject` */
  readonly workspace: string
  /** Folder with homes and projects in which every name is that no server may have: see `plantPeople` */
  readonly people: string
  /** File in /dev/shm */
  readonly shared: string
  /** Pathname socket that listens */
  readonly socket: string
  /** Name of an abstract socket that listens, without the NUL */
  readonly abstract: string
  /** Port on 127.0.0.1 */
  readonly port: number
  /** Port on ::1, or null where this machine has no such address */
  readonly port6: number | null
  /** Variables of the daemon's environment */
  readonly variables: Readonly<Record<string, string>>
  /** Process of the host that is there as long as the canaries */
  readonly pid: number
}

/** The canaries, and a program and folder that any user of the host may use. */
export interface Planted extends AsyncDisposable {
  readonly canaries: Canaries
  /** A copy of the probes' program that everybody can execute */
  readonly program: string
}

/** What is said where the machine has none, or none that takes a file. */
const sharedMemory: Named = {
  path: '/dev/shm',
  access: 'write',
  code: 'ERR_USAGE',
  mend: 'a file is made there for this, so mount it, as root: mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm',
}

/**
 * Plants them all, each named to the janitor before. Throws ERR_USAGE where the home, the temporary folder or /dev/shm takes nothing,
 * or no program runs, and ERR_SHORTAGE where there is no room.
 */
export const plantCanaries = async (homeFolder: string, janitor: Janitor): Promise<Planted> => {
  const undo: (() => Promise<unknown>)[] = []
  const takeAway = async (): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step()
  }
  try {
    return { ...(await plant(homeFolder, janitor, undo)), [Symbol.asyncDispose]: takeAway }
  } catch (error) {
    await takeAway()
    throw error
  }
}

const plant = async (
  homeFolder: string,
  janitor: Janitor,
  undo: (() => Promise<unknown>)[],
): Promise<Pick<Planted, 'canaries' | 'program'>> => {
  const word = `canary-${newInstanceId()}`
  const willMake = async (path: string): Promise<void> => {
    await janitor.takes(`tree /${path.slice(1)}`)
    undo.push(() => rm(path, { recursive: true, force: true }))
  }
  const write = <T>(parent: string, act: () => T | Promise<T>): Promise<T> =>
    onNamed(ground(parent, 'write'), act)
  const makeEmpty = async (parent: string, name: string, mode: number): Promise<string> => {
    const real = await onNamed(ground(parent, 'read'), () => realpath(parent))
    const path = join(real, `${name}${newInstanceId()}`)
    await willMake(path)
    await write(parent, () => mkdir(path, { mode }))
    await chmod(path, mode)
    return path
  }
  const makeFolder = async (parent: string, name: string): Promise<string> => {
    const path = await makeEmpty(parent, name, 0o755)
    await write(parent, () => writeFile(join(path, 'canary'), word, { mode: 0o644 }))
    return path
  }
  const listen = async (...at: [string] | [number, string]): Promise<Server> => {
    const server = createServer((socket) => socket.on('error', () => socket.destroy()).end())
    if (typeof at[0] === 'number') server.listen(at[0], at[1])
    else server.listen(at[0])
    await once(server, 'listening')
    undo.push(async () => {
      server.close()
      await once(server, 'close')
    })
    return server
  }
  const portOf = (server: Server): number => (server.address() as AddressInfo).port
  const folder = await makeFolder(tmpdir(), 'sallyport-verify-')
  const home = await makeFolder(homeFolder, '.sallyport-verify-')
  await mkdir(join(home, '.aws'), { mode: 0o755 })
  await writeFile(join(home, '.aws', 'credentials'), word, { mode: 0o644 })
  const state = await makeEmpty(tmpdir(), 'sallyport-verify-state-', 0o700)
  const own = await makeFolder(tmpdir(), 'sallyport-verify-own-')
  const workspace = await makeEmpty(tmpdir(), 'sallyport-verify-project-', 0o777)
  await write(tmpdir(), () => plantProject(workspace))
  const people = await makeEmpty(tmpdir(), 'sallyport-verify-people-', 0o755)
  await write(tmpdir(), () => plantPeople(people, word))
  const shared = `/dev/shm/${word}`
  await willMake(shared)
  await onNamed(sharedMemory, () => writeFile(shared, word, { mode: 0o644 }))
  const socket = join(folder, 'agent.sock')
  await listen(socket)
  await chmod(socket, 0o777)
  await listen(`\0${word}`)
  const port = portOf(await listen(0, '127.0.0.1'))
  // Only an address that this machine has not is nobody's to reach.
  const port6 = await listen(0, '::1').then(portOf, (error: unknown) => {
    if (['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(errnoOf(error) ?? '')) return null
    throw error
  })
  const program = await placeProgram((parent) =>
    parent === tmpdir() ? Promise.resolve(folder) : makeEmpty(parent, 'sallyport-verify-program-', 0o755),
  )
  const variables = { SALLYPORT_VERIFY_CANARY: word, AWS_SECRET_ACCESS_KEY: word, GITHUB_TOKEN: word }
  const canaries = {
    word,
    home,
    folder,
    state,
    own,
    workspace,
    people,
    shared,
    socket,
    abstract: word,
    port,
    port6,
    variables,
    // In a container the verification itself may be 1, a number that every sandbox has, too.
    pid: janitor.pid,
  }
  return { canaries, program }
}
