// The listening end of one sandbox's way out: whoever comes through this socket is that sandbox, and is judged by its policy.
import { chmod, chown, mkdir, rmdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { dirname } from 'node:path'
import { enough, SallyportError } from '../errors.ts'
import { makeFolder } from '../lib/folder.ts'
import { LoopTurns } from '../lib/loop-turns.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { maxSocketPath } from '../lib/socket-path.ts'
import type { Door, DoorOptions, EgressEndpoint, EgressPolicy, OpenConnection } from '../schema/egress.ts'
import { isPattern } from './allowlist.ts'
import { parseEndpoint, parsePort } from './authority.ts'
import { carry } from './carry.ts'
import type { Judges } from './carry.ts'
import { holdDeadlines } from './deadlines.ts'
import { escaped } from './escape.ts'
import { expectHead } from './first-bytes.ts'
import { refusalAnswer } from './http-answer.ts'
import { absoluteTarget, connectTarget, textOf } from './http-request.ts'
import { daemonConnections, openingMs } from './limits.ts'
import { readNotices } from './notices.ts'
import type { Attempt } from './notices.ts'
import { openingLine } from './opening.ts'
import type { Purpose } from './opening.ts'
import { Partings } from './partings.ts'
import { Passage } from './passage.ts'
import { placeholderElsewhere, Refusal } from './refusal.ts'
import { refuseStray } from './stray.ts'
import { systemLookup } from './resolve.ts'
import type { Lookup } from './resolve.ts'
import { Slots } from './slots.ts'
import { Teller } from './teller.ts'

/** What the doors of one daemon share. */
export interface House {
  readonly lookup: Lookup
  readonly slots: Slots
}

const house: House = { lookup: systemLookup, slots: new Slots(daemonConnections) }
/** Where what is said to the proxy itself was going */
const proxied: EgressEndpoint = { host: 'proxy', port: 0 }

/**
 * Makes the folder and the socket, and listens; where it fails nothing of either is left. Throws ERR_RUNTIME_UNSAFE where the folder is there already or can't be made,
 * or the path is too long, ERR_SHORTAGE where there is not enough to make them with, and ERR_CONFIG_INVALID for a grant whose host is not canonical.
 */
export async function openDoor(policy: EgressPolicy, options: DoorOptions, shared = house): Promise<Door> {
  for (const { host } of policy.grants)
    if (!isPattern(host))
      throw new SallyportError(
        'ERR_CONFIG_INVALID',
        `egress of ${policy.server} names the host ${JSON.stringify(host)}, which is not a lower-case name or *.name of two labels`,
      )
  const bytes = Buffer.byteLength(options.path)
  if (bytes > maxSocketPath)
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `socket path ${options.path} has ${bytes} bytes and the kernel takes ${maxSocketPath}; choose a shorter --runtime`,
    )
  try {
    return await opened(policy, options, shared)
  } catch (cause) {
    if (!isShortage(cause)) throw cause
    const what = `the way out of ${policy.server} could not be opened: ${String(cause)}; ${enough}`
    throw new SallyportError('ERR_SHORTAGE', what, { server: policy.server }, { cause })
  }
}

async function opened(policy: EgressPolicy, options: DoorOptions, shared: House): Promise<Door> {
  await makeNewFolder(dirname(options.path))
  const door = new UnixDoor(policy, options, shared)
  try {
    await door.bind(options.uid)
  } catch (error) {
    await door[Symbol.asyncDispose]()
    throw error
  }
  return door
}

class UnixDoor implements Door {
  readonly path: string
  readonly #judges: Judges
  readonly #slots: Slots
  readonly #shared: Slots
  readonly #teller: Teller
  readonly #turns = new LoopTurns()
  readonly #partings = new Partings()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #passages = new Set<Passage>()
  #count = 0
  #hasNotices = false
  #closed: Promise<void> | null = null

  constructor(
    policy: EgressPolicy,
    { watch, interceptor, screen, path }: DoorOptions,
    { lookup, slots }: House,
  ) {
    this.path = path
    this.#judges = { policy, watch, interceptor, screen, lookup }
    this.#slots = new Slots(policy.limits.connections)
    this.#shared = slots
    this.#teller = new Teller((event) => watch.event(event))
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    )
  }

  async bind(uid: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject).once('listening', resolve)
    // Never by the umask, which holds for whatever else the process makes in that moment: nobody passes the folder yet.
    this.#server.listen(this.path, this.#judges.policy.limits.connections)
    await promise
    this.#server.off('error', reject).on('error', ignored)
    await chmod(this.path, 0o600)
    if (uid === process.geteuid?.()) return
    await chown(this.path, uid, -1)
    await chmod(dirname(this.path), 0o711)
  }

  connections(): readonly OpenConnection[] {
    return [...this.#passages].filter(({ port }) => port !== 0)
  }

  cut(which: (connection: OpenConnection) => boolean, reason: string): void {
    for (const passage of this.#passages) if (passage.port !== 0 && which(passage)) passage.part(reason)
  }

  parted(): Promise<void> | null {
    return this.#partings.over()
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', ignored).once('close', () => this.#sockets.delete(socket))
    const passage = new Passage(
      socket,
      `e-${++this.#count}`,
      (event) => this.#teller.event(event),
      this.#partings,
    )
    const slot = this.#slots.take()
    const place = slot === null ? null : this.#shared.take()
    if (slot === null || place === null) {
      slot?.()
      return passage.end('refused', 'too-many')
    }
    this.#passages.add(passage)
    const leave = (): void => {
      this.#passages.delete(passage)
      slot()
      place()
    }
    void this.#serve(passage)
      .catch((error: unknown) => {
        const refusal = Refusal.from(error)
        passage.refuse(refusal, passage.awaitsAnswer ? refusalAnswer(refusal) : null)
      })
      .finally(leave)
  }

  async #serve(passage: Passage): Promise<void> {
    const { policy } = this.#judges
    const purpose = await passage.opening.read(openingLine(), { ms: openingMs, late: 'bad-opening' })
    if (purpose.kind === 'notices') return this.#takeNotices(passage)
    holdDeadlines(passage, policy.limits)
    await this.#turns.take()
    if (purpose.kind === 'connect') return this.#connect(passage, purpose)
    passage.awaitsAnswer = true
    const head = await expectHead(passage, policy.limits.handshakeMs)
    const isConnect = head.method === 'CONNECT'
    // Its head is for us alone; another one may go where a placeholder belongs
    if (isConnect) refuseStray(this.#judges.screen, `${head.target}\n${textOf(head.fields)}`, proxied)
    const target = isConnect ? connectTarget(head) : absoluteTarget(head)
    await carry(this.#judges, passage, target, isConnect ? { how: 'connect' } : { how: 'request', head })
  }

  async #connect(passage: Passage, { name, port }: Purpose & { kind: 'connect' }): Promise<void> {
    passage.host = name
    refuseStray(this.#judges.screen, name, { host: escaped(name), port: parsePort(port) ?? 0 })
    const target = parseEndpoint(name, port)
    if (target === null) throw new Refusal('name-invalid')
    await carry(this.#judges, passage, target, { how: 'bytes' })
  }

  /** Once in the sandbox's life, by its relay and before the server runs: who comes later is not it. */
  async #takeNotices(passage: Passage): Promise<void> {
    if (this.#hasNotices) throw new Refusal('second-notices')
    this.#hasNotices = true
    const socket = passage.yieldSocket()
    const tell = (attempt: Attempt): void =>
      this.#teller.attempt(
        `e-${++this.#count}`,
        this.#isClean(attempt) ? attempt : { ...attempt, reason: placeholderElsewhere },
      )
    await readNotices(socket, tell).catch((error: unknown) =>
      this.#teller.attempt(passage.connection, {
        host: '',
        port: null,
        count: 1,
        reason: Refusal.from(error).reason,
      }),
    )
  }

  #isClean({ host, port }: Attempt): boolean {
    return this.#judges.screen?.text(host, { host, port: port ?? 0 }) !== false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close()
    await this.#closed
  }

  async #close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve()) // libuv removes the file
    for (const passage of this.#passages) passage.cut('door-closed')
    for (const socket of this.#sockets) socket.destroy()
    await promise
    this.#teller[Symbol.dispose]()
    // What somebody put there stays until the folder of all doors is made anew; nothing of ours is left in it.
    await rmdir(dirname(this.path)).catch(() => undefined)
  }
}

/** The folder is ours alone, or may be walked through by the uid that is to connect; it is never one that was there. */
async function makeNewFolder(folder: string): Promise<void> {
  makeFolder(dirname(folder), 0o711)
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (isShortage(error)) throw error
    const errno = errnoOf(error) ?? String(error)
    const mend = errno === 'EEXIST' ? 'remove it' : `see that ${dirname(folder)} can be written to`
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `${folder} cannot be made for the sockets of one sandbox (${errno}); ${mend}`,
      { path: folder },
      { cause: error },
    )
  }
}

function ignored(): void {
  // `close` follows an error, and is where it is dealt with
}
