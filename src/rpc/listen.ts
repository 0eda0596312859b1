// The two sockets of a daemon: bound in folders of their own, answering nobody it does not know.
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { lstatSync, unlinkSync } from 'node:fs'
import { chmod, chown, lstat, rename, unlink } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import { Thinned } from '../lib/thinned.ts'
import { Allowance, type AllowanceLimits, type Share } from './allowance.ts'
import { serveConnection } from './connection.ts'
import { type ConnectionLimits, defaultLimits } from './connection-limits.ts'
import type { Service } from './answering.ts'
import { errorLine, noId } from './framing.ts'
import type { PeerCredentials, PeerQuery } from './peer.ts'
import type { Principal } from './protocol.ts'
import { whoMayUse } from './runtime-dir.ts'

/** What one socket needs to know. */
export interface ListenOptions {
  readonly path: string
  /** Group that may connect (0660), or null for the owner alone (0600) */
  readonly gid: number | null
  readonly service: Service
  readonly peers: PeerQuery
  /** Whether a uid may use this socket at all */
  readonly admits: (peer: PeerCredentials) => boolean
  readonly log: Logger
  readonly limits?: Partial<ListenLimits>
}

/** Bounds of a socket, beside those of each connection. */
export interface ListenLimits extends ConnectionLimits, AllowanceLimits {
  /** Connections at once, known or not */
  readonly connections: number
  /** Connections of one uid */
  readonly connectionsPerUid: number
}

const farewellMs = 200
/** How long a refused connection may stay, ms: a peer that is cut while it says something may not read why */
const goodbyeMs = 1000
/** How many of one uid stay so long; what comes beyond is cut at once, so that nobody keeps another out */
const maxGoodbyes = 16
/** How often refused and dropped connections are logged, by uid and reason, ms */
const logEveryMs = 10_000

/** What a socket is given unless a test says otherwise. */
export const defaultListenLimits: ListenLimits = {
  ...defaultLimits,
  connections: 4096,
  connectionsPerUid: 256,
  ownBytes: 256 * 1024,
  sharedBytes: 64 * 1024 * 1024,
}

/** Where a socket is bound, before it has its name: no longer than that, since the kernel bounds both. */
export const draftOf = (path: string): string => `${path.slice(0, -1)}~`

/** Which file it is, whatever stands at its path. */
interface Placed {
  readonly dev: number
  readonly ino: number
}

/**
 * Binds the socket and serves it. A stale socket file is replaced, so the caller must hold the runtime directory's lock.
 * Disposing closes the socket, cuts the connections that are still control connections, and removes the file, if it is the one
 * that was bound.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const limits = { ...defaultListenLimits, ...options.limits }
  for (const path of [options.path, draftOf(options.path)]) await removeStale(path)
  const listener = new Listener(options, limits)
  await listener.bind()
  return listener
}

/** A bound socket. */
export class Listener implements AsyncDisposable {
  readonly path: string
  readonly #options: ListenOptions
  readonly #limits: ListenLimits
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #placed: Placed | null = null
  #closed: Promise<void> | null = null
  readonly #perUid = new Map<number, Allowance>()
  /** Refused connections that are still there, by uid */
  readonly #leaving = new Map<string, number>()
  readonly #told = new Thinned(logEveryMs)

  constructor(options: ListenOptions, limits: ListenLimits) {
    this.path = options.path
    this.#options = options
    this.#limits = limits
    // Paused: not a byte is read before the kernel has said whose it is.
    this.#server = createServer(
      { allowHalfOpen: true, pauseOnConnect: true },
      (socket) => void this.#accept(socket),
    )
    this.#server.maxConnections = limits.connections
    this.#server.on('drop', () => this.#tell('drop', {}, 'connection dropped, too many are open'))
  }

  /**
   * Binds, then says who may connect, then gives the socket its name: libuv removes at its end whatever has the name that it bound.
   * Never by the umask, which holds for whatever else the process makes in that moment: until the mode is set the folder lets in
   * nobody that `admits` would not judge.
   */
  async bind(): Promise<void> {
    const draft = draftOf(this.path)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject).once('listening', resolve)
    this.#server.listen(draft, this.#limits.connections)
    await promise
    this.#server.off('error', reject)
    this.#server.on('error', (error) => this.#options.log.error({ err: error }, 'socket failed'))
    await chmod(draft, 0o600)
    if (this.#options.gid !== null) {
      await chown(draft, process.geteuid?.() ?? -1, this.#options.gid)
      await chmod(draft, 0o660)
    }
    const { dev, ino } = await lstat(draft)
    await rename(draft, this.path)
    this.#placed = { dev, ino }
  }

  /** Whether what stands at the path is what was bound. */
  get isInPlace(): boolean {
    try {
      const { dev, ino } = lstatSync(this.path)
      return ino === this.#placed?.ino && dev === this.#placed.dev
    } catch {
      return false // what can't be looked at, nobody can connect to
    }
  }

  async #accept(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    const early = (): void => void this.#sockets.delete(socket)
    socket.once('close', early)
    socket.on('error', ignored)
    try {
      const peer = await this.#options.peers.ask(socket)
      const share = this.#shareOf(socket, peer)
      serveConnection(socket, {
        share,
        service: this.#options.service,
        principal: principalOf(peer),
        limits: this.#limits,
        log: this.#options.log,
      })
    } catch (error) {
      this.#refuse(socket, SallyportError.from(error))
    }
  }

  #refuse(socket: Socket, refusal: SallyportError): void {
    const { code, message: reason, details } = refusal
    const uid = String(details['uid'])
    this.#tell(`${code} ${uid}`, { code, reason }, 'connection refused')
    socket.end(errorLine(noId, refusal))
    const leaving = (this.#leaving.get(uid) ?? 0) + 1
    if (leaving > maxGoodbyes) return void setImmediate(() => socket.destroy())
    this.#leaving.set(uid, leaving)
    // Whoever goes on talking does not stay any longer for it.
    const cut = setTimeout(() => socket.destroy(), goodbyeMs)
    const left = (): void => {
      clearTimeout(cut)
      this.#left(uid)
    }
    if (socket.destroyed) left()
    else socket.once('close', left).resume()
  }

  #left(uid: string): void {
    const leaving = (this.#leaving.get(uid) ?? 0) - 1
    if (leaving > 0) this.#leaving.set(uid, leaving)
    else this.#leaving.delete(uid)
  }

  #tell(kind: string, detail: Readonly<Record<string, unknown>>, message: string): void {
    const times = this.#told.count(kind)
    if (times !== null) this.#options.log.warn({ ...detail, path: this.path, times }, message)
  }

  #shareOf(socket: Socket, peer: PeerCredentials): Share {
    if (!this.#options.admits(peer))
      throw new SallyportError(
        'ERR_NOT_AUTHORISED',
        `uid ${peer.uid} may not use ${this.path}; ${whoMayUse(this.path)}`,
        { uid: peer.uid },
      )
    const allowance = this.#perUid.get(peer.uid) ?? new Allowance(this.#limits)
    if (allowance.connections >= this.#limits.connectionsPerUid)
      throw new SallyportError(
        'ERR_BUSY',
        `uid ${peer.uid} has ${allowance.connections} connections open; close one`,
        { uid: peer.uid },
      )
    this.#perUid.set(peer.uid, allowance)
    const share = allowance.open()
    const over = (): void => {
      share[Symbol.dispose]()
      if (allowance.connections === 0) this.#perUid.delete(peer.uid)
    }
    if (socket.destroyed) over()
    else socket.once('close', over)
    return share
  }

  /** Takes no more connections; those that are open go on. The file is removed; one that came in its place is its maker's. */
  closeIntake(): void {
    if (this.#closed !== null) return
    this.#remove()
    this.#closed = new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #remove(): void {
    try {
      if (this.isInPlace) unlinkSync(this.path)
    } catch (error) {
      this.#options.log.warn({ err: error, path: this.path }, 'socket could not be removed')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closeIntake()
    for (const socket of this.#sockets) socket.end() // after the answers that were written
    const cut = setTimeout(() => this.#cut(), farewellMs)
    await this.#closed
    clearTimeout(cut)
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

function principalOf({ uid, gid, pid }: PeerCredentials): Principal {
  return { kind: 'uid', id: String(uid), attributes: { uid, gid, pid } }
}

async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (found === null) return
  if (!found.isSocket())
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `${path} is not a socket; remove it, or choose another --runtime`,
    )
  await unlink(path)
}

function ignored(): void {
  // `close` follows an error, and is where it is dealt with
}
