// The caller's end of a control connection: connects, pairs answers with requests, hears notifications.
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { SallyportError } from '../errors.ts'
import { whenLate } from '../lib/deadline.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'
import type { RawJson } from '../lib/raw-json.ts'
import { parseReply, requestLine } from './framing.ts'
import { LineBuffer } from './line-buffer.ts'
import type { Reply } from './framing.ts'
import { whoMayUse } from './runtime-dir.ts'

const connectDeadlineMs = 5000
/** Time between two attempts at a daemon whose backlog is full, ms */
const againMs = 10

/** Opens a socket of a daemon. Throws ERR_DAEMON_UNAVAILABLE where nobody listens, ERR_NOT_AUTHORISED where it is not ours to open, ERR_SHORTAGE where there is nothing to open it with. */
export async function dial(
  path: string,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<Caller> {
  for (const end = performance.now() + connectDeadlineMs; ; await delay(againMs)) {
    signal?.throwIfAborted()
    try {
      return new Caller(await connected(path, end - performance.now(), signal), path)
    } catch (error) {
      const mayPass = error instanceof SallyportError && isFull(error.cause)
      if (!mayPass || performance.now() >= end) throw error
    }
  }
}

/** One attempt, for so long. */
async function connected(path: string, forMs: number, signal: AbortSignal | undefined): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: false })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const inTime = whenLate(forMs, () => reject(unavailable(path, 'ETIMEDOUT')))
  const onAbort = (): void => reject(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  socket
    .once('connect', resolve)
    .once('error', (error: NodeJS.ErrnoException) => reject(translate(path, error)))
  try {
    await promise
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    inTime()
    signal?.removeEventListener('abort', onAbort)
    socket.removeAllListeners('connect')
  }
}

/** Hears a notification of the daemon. */
export type NotificationListener = (method: string, params: unknown) => void

interface Waiting {
  readonly signal?: AbortSignal | undefined
}

type Result = Extract<Reply, { kind: 'result' }>

interface Pending {
  readonly method: string
  resolve(result: Result): void
  reject(error: unknown): void
}

/** A connection on which calls are made. Disposing closes it, and what is unanswered fails. */
export class Caller implements AsyncDisposable {
  readonly path: string
  readonly #socket: Socket
  readonly #lines = new LineBuffer()
  readonly #pending = new Map<number, Pending>()
  readonly #closed = Promise.withResolvers<void>()
  readonly #listeners = new Set<NotificationListener>()
  #failure: SallyportError | null = null
  #nextId = 1
  #isHandedOver = false

  constructor(socket: Socket, path: string) {
    this.path = path
    this.#socket = socket
    socket.removeAllListeners('error')
    socket.on('data', (chunk) => this.#receive(chunk))
    // Somebody listened: a daemon that was killed since, or one that had no descriptor for one more.
    socket.on('error', (error: NodeJS.ErrnoException) => this.#fail(closed(path, error)))
    socket.on('close', () => {
      this.#fail(closed(path))
      this.#closed.resolve()
    })
  }

  /** Resolves when the connection is gone. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Why the connection is of no more use, or null while it is. */
  get failure(): SallyportError | null {
    return this.#failure
  }

  /** Makes one call. An aborted signal cancels it at the daemon too; the first reason wins. */
  async call(method: string, params: unknown, waiting: Waiting = {}): Promise<unknown> {
    return (await this.#ask(method, params, waiting)).result
  }

  /** Makes one call, and gives its result as the daemon wrote it: numbers of any size, keys in their order. */
  async callText(method: string, params: unknown, waiting: Waiting = {}): Promise<RawJson> {
    return (await this.#ask(method, params, waiting)).text()
  }

  async #ask(method: string, params: unknown, { signal }: Waiting): Promise<Result> {
    signal?.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    const id = this.#nextId++
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.#pending.set(id, { method, resolve, reject })
    const onAbort = (): void => {
      this.#pending.delete(id)
      this.#cancel(id)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#socket.write(requestLine(id, method, params))
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Hears every notification until the returned function is called. */
  listen(listener: NotificationListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Stops and continues reading, so that a slow consumer slows the daemon's stream instead of filling memory. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /**
   * Gives up the connection after an accepted `session/attach`: the socket, paused, and the bytes read behind the answer.
   * Nothing may be called on this object afterwards.
   */
  handOver(): { socket: Socket; head: Buffer } {
    this.#isHandedOver = true
    this.#socket.removeAllListeners()
    return { socket: this.#socket, head: this.#lines.rest() }
  }

  // The answer to a cancelled call comes late or never, and nobody waits for it.
  #cancel(id: number): void {
    if (this.#socket.writable)
      this.#socket.write(requestLine(this.#nextId++, 'calls/cancel', { request: id }))
  }

  #receive(chunk: Buffer): void {
    this.#lines.push(chunk)
    try {
      for (let line = this.#lines.next(); line !== null; line = this.#lines.next()) {
        this.#dispatch(line)
        if (this.#socket.listenerCount('data') === 0) return // handed over: the rest is the session's
      }
    } catch (error) {
      this.#fail(SallyportError.from(error))
      this.#socket.destroy()
    }
  }

  #dispatch(line: Buffer): void {
    const reply = parseReply(line)
    if (reply.kind === 'notification') {
      for (const listener of this.#listeners) listener(reply.method, reply.params)
      return
    }
    if (reply.id === null) {
      if (reply.kind === 'error') this.#fail(reply.error) // said of the connection as a whole
      return
    }
    const pending = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if (reply.kind === 'error') pending?.reject(reply.error)
    else {
      // What follows the answer is the session's, not ours to parse.
      if (pending?.method === 'session/attach') this.#socket.pause().removeAllListeners('data')
      pending?.resolve(reply)
    }
  }

  #fail(error: SallyportError): void {
    this.#failure ??= error
    for (const pending of this.#pending.values()) pending.reject(this.#failure)
    this.#pending.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isHandedOver) return
    this.#socket.destroy()
    await this.#closed.promise
  }
}

function translate(path: string, error: NodeJS.ErrnoException): SallyportError {
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return new SallyportError(
      'ERR_NOT_AUTHORISED',
      `this user may not open ${path}; ${whoMayUse(path)}`,
      { path },
      { cause: error },
    )
  if (isShortage(error) && !isFull(error)) return SallyportError.from(error)
  return unavailable(path, error.code ?? error.message, error)
}

/** A daemon is there, and has more to let in than its socket holds. */
const isFull = (error: unknown): boolean => errnoOf(error) === 'EAGAIN'

function closed(path: string, cause?: NodeJS.ErrnoException): SallyportError {
  const why = cause === undefined ? '' : ` (${cause.code ?? cause.message})`
  const message = `the daemon closed ${path}${why}; see whether it still runs, and has descriptors to spare`
  return new SallyportError('ERR_DAEMON_UNAVAILABLE', message, { path }, { cause })
}

function unavailable(path: string, why: string, cause?: Error): SallyportError {
  return new SallyportError(
    'ERR_DAEMON_UNAVAILABLE',
    `no daemon answers on ${path} (${why}); start one with: sallyport serve`,
    { path },
    { cause },
  )
}
