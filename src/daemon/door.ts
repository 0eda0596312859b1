// What stands at a daemon's doors: the sockets, the record of who answers, and the watch that each is still ours.
import { lstat, rename, writeFile } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Service } from '../rpc/connection.ts'
import { dial } from '../rpc/dial.ts'
import { listen, type Listener } from '../rpc/listen.ts'
import type { PeerQuery } from '../rpc/peer.ts'
import { runtimePaths } from '../rpc/runtime-dir.ts'
import type { Guard } from './guard.ts'

const watchMs = 2000

/** A socket, who may reach it, and what answers there. */
interface Door {
  readonly path: string
  /** Group that may connect; null for none but the owner's */
  readonly gid: number | null
  readonly service: Service
  readonly admits: (uid: number) => boolean
}

/** Which socket is ours at a path. */
interface Placed {
  readonly path: string
  readonly ino: number
}

interface DoorPorts {
  readonly guard: Pick<Guard, 'cleanUp'>
  readonly peers: PeerQuery
  readonly log: Logger
}

/** The sockets that a daemon listens on. Disposing closes every one. */
export class Doors implements AsyncDisposable {
  readonly #ports: DoorPorts
  readonly #open: Listener[] = []
  readonly #placed: Placed[] = []
  #watch: NodeJS.Timeout | null = null

  constructor(ports: DoorPorts) {
    this.#ports = ports
  }

  /** Answers at a door once this resolves; a killed daemon leaves its removal to the guard. */
  async open({ path, gid, service, admits }: Door): Promise<void> {
    const { guard, peers, log } = this.#ports
    guard.cleanUp(`unlink ${asAbsolute(path)}`)
    this.#open.push(await listen({ path, gid, service, peers, log, admits: ({ uid }) => admits(uid) }))
    this.#placed.push({ path, ino: (await lstat(path)).ino })
  }

  /** Tells, within two seconds and until the intake is closed, that a socket is not the one that was opened. */
  watch(onLost: (error: SallyportError) => void): void {
    const look = async ({ path, ino }: Placed): Promise<void> => {
      const found = await lstat(path).catch(() => null)
      if (found?.ino === ino || this.#watch === null) return
      this.#ports.log.error({ path }, 'socket was removed or replaced, standing down')
      onLost(
        new SallyportError(
          'ERR_DAEMON_UNAVAILABLE',
          `${path} was removed or replaced, so nobody who comes there can reach this daemon`,
        ),
      )
    }
    this.#watch = setInterval(() => void Promise.all(this.#placed.map(look)), watchMs).unref()
  }

  /** Nobody new comes in. */
  closeIntake(): void {
    if (this.#watch !== null) clearInterval(this.#watch)
    this.#watch = null
    for (const door of this.#open) door.closeIntake()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closeIntake()
    await Promise.all(this.#open.map((door) => door[Symbol.asyncDispose]()))
  }
}

/** Where such a record is until it is whole. */
export const draftOf = (path: string): string => `${path}.new`

/** Replaces the record of who answers here, whole or not at all. Its draft is the caller's to remove where this fails, or is killed. */
export async function writeRecord(path: string, record: object): Promise<void> {
  await writeFile(draftOf(path), `${JSON.stringify(record)}\n`, { mode: 0o600 })
  await rename(draftOf(path), path)
}

/** Whether a daemon answers at the door of a runtime directory. */
export async function answers(directory: string): Promise<boolean> {
  try {
    await using _caller = await dial(runtimePaths(directory).hostSocket)
    return true
  } catch (error) {
    return error instanceof SallyportError && error.code !== 'ERR_DAEMON_UNAVAILABLE'
  }
}

/** The path as the guard takes it. */
export function asAbsolute(path: string): `/${string}` {
  return `/${path.replace(/^\/+/, '')}`
}
