// What stands at a daemon's doors: the sockets, the record of who answers, and the watch that each is still ours.
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import type { DaemonId } from '../lib/ids.ts'
import type { Logger } from '../lib/logger.ts'
import type { Service } from '../rpc/answering.ts'
import { dial } from '../rpc/dial.ts'
import { draftOf as bindingOf, listen, type Listener } from '../rpc/listen.ts'
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

interface DoorPorts {
  readonly guard: Pick<Guard, 'cleanUp'>
  readonly peers: PeerQuery
  readonly log: Logger
}

/** The sockets that a daemon listens on. Disposing closes every one. */
export class Doors implements AsyncDisposable {
  readonly #ports: DoorPorts
  readonly #open: Listener[] = []
  #watch: NodeJS.Timeout | null = null

  constructor(ports: DoorPorts) {
    this.#ports = ports
  }

  /** Answers at a door once this resolves; a killed daemon leaves its removal to the guard. */
  async open({ path, gid, service, admits }: Door): Promise<void> {
    const { guard, peers, log } = this.#ports
    for (const made of [path, bindingOf(path)]) guard.cleanUp(`unlink ${asAbsolute(made)}`)
    this.#open.push(await listen({ path, gid, service, peers, log, admits: ({ uid }) => admits(uid) }))
  }

  /** Tells, within two seconds and until the intake is closed, that a socket is not the one that was opened. */
  watch(onLost: (error: SallyportError) => void): void {
    const look = ({ path, isInPlace }: Listener): void => {
      if (isInPlace) return
      this.#ports.log.error({ path }, 'socket was removed or replaced, standing down')
      onLost(
        new SallyportError(
          'ERR_DAEMON_UNAVAILABLE',
          `${path} was removed or replaced, so nobody who comes there can reach this daemon`,
        ),
      )
    }
    this.#watch = setInterval(() => this.#open.forEach(look), watchMs).unref()
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

/** Removes the record of a daemon, whole or not; one that another has put in its place stays. */
export async function removeRecord(path: string, daemon: DaemonId): Promise<void> {
  await rm(draftOf(path), { force: true })
  const text = await readFile(path, 'utf8').catch(() => '')
  if (text.includes(JSON.stringify(daemon))) await rm(path, { force: true })
}

/** Whether a daemon answers at the door of a runtime directory, if only by letting nobody in. */
export async function answers(directory: string): Promise<boolean> {
  try {
    await using _caller = await dial(runtimePaths(directory).hostSocket)
    return true
  } catch (error) {
    return error instanceof SallyportError && error.code === 'ERR_NOT_AUTHORISED'
  }
}

/** The path as the guard takes it. */
export function asAbsolute(path: string): `/${string}` {
  return `/${path.replace(/^\/+/, '')}`
}
