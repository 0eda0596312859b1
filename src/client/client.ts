// The typed client of a running daemon: what index.ts exports and what the CLI uses; there is no other door.
import { SallyportError } from '../errors.ts'
import { parseJson } from '../lib/parse-json.ts'
import type { RawJson } from '../lib/raw-json.ts'
import { dial } from '../rpc/dial.ts'
import type { Caller } from '../rpc/dial.ts'
import { protocolId } from '../rpc/protocol.ts'
import type { Hello, OperatorMethods, SallyportEvent } from '../rpc/protocol.ts'
import type { AuditPage, AuditQuery, AuditRecord } from '../rpc/governed.ts'
import { runtimePaths } from '../rpc/runtime-dir.ts'
import { allPages } from './audit-pages.ts'
import { expectObject } from './expect-object.ts'
import { answerFrom, greetingAt, inTime } from './in-time.ts'
import { notifications, notificationsOf, type Notification } from './notifications.ts'

/** Which daemon to reach, and on which of its sockets. */
export interface ConnectOptions {
  /** Runtime directory of the daemon, or the path of one socket */
  readonly at:
    | { readonly runtimeDir: string; readonly role?: 'host' | 'operator' }
    | { readonly socket: string }
  readonly signal?: AbortSignal | undefined
}

interface Waiting {
  readonly signal?: AbortSignal | undefined
}

interface Subscribing {
  readonly subscribed?: (() => void) | undefined
}

interface Followed {
  readonly lines?: number
  readonly lost?: ((count: number) => void) | undefined
}

/**
 * Connects and greets. Throws ERR_DAEMON_UNAVAILABLE where no daemon answers in time, ERR_NOT_AUTHORISED where this user
 * may not use the socket, ERR_DAEMON_PROTOCOL where the daemon speaks another protocol.
 */
export async function connect({ at, signal }: ConnectOptions): Promise<Client> {
  const path = 'socket' in at ? at.socket : socketOf(at.runtimeDir, at.role ?? 'host')
  return inTime(greetingAt(path), signal, async (waiting) => {
    const caller = await dial(path, waiting)
    try {
      const hello = await caller.call('sallyport/hello', { protocol: protocolId }, waiting)
      return new Client(caller, asHello(hello, path))
    } catch (error) {
      await caller[Symbol.asyncDispose]()
      throw error
    }
  })
}

/** A connection to a daemon. Disposing closes it; calls in flight fail and are cancelled at the daemon. */
export class Client implements AsyncDisposable {
  /** What the daemon said of itself and of the caller */
  readonly hello: Hello
  readonly #caller: Caller

  constructor(caller: Caller, hello: Hello) {
    this.#caller = caller
    this.hello = hello
  }

  /**
   * Calls one method; every failure is a SallyportError with the daemon's code. The signal cancels it at the daemon. Where it is
   * one that a daemon answers out of what it knows, and 60 s bring no answer, it is ERR_DAEMON_UNAVAILABLE.
   */
  async call<M extends keyof OperatorMethods>(
    method: M,
    params: OperatorMethods[M]['params'],
    { signal }: Waiting = {},
  ): Promise<OperatorMethods[M]['result']> {
    const deadline = answerFrom(this.#caller.path, method, params)
    if (deadline === null) return ask(this.#caller, method, params, { signal })
    return inTime(deadline, signal, (waiting) => ask(this.#caller, method, params, waiting))
  }

  /** Calls one method as `call` does, and gives the result's own text, in which no number was rounded. */
  async callText<M extends keyof OperatorMethods>(
    method: M,
    params: OperatorMethods[M]['params'],
    { signal }: Waiting = {},
  ): Promise<RawJson> {
    const text = await this.#caller.callText(method, params, { signal })
    if (!text.raw.startsWith('{')) expectObject(method, parseJson(text.raw))
    return text
  }

  /**
   * Events from now on, or from after `since`, on a connection of their own: a slow reader slows only itself. From when on none
   * is missed, `subscribed` is told: calls over other connections may be answered before.
   */
  async *events({
    since,
    signal,
    subscribed,
  }: Waiting & Subscribing & { readonly since?: number } = {}): AsyncGenerator<SallyportEvent> {
    await using caller = await dial(this.#caller.path, { signal })
    const events = notifications(caller, 'events/event', { signal })
    await ask(caller, 'events/subscribe', since === undefined ? {} : { since }, { signal })
    subscribed?.()
    yield* events
  }

  /**
   * Lines of a server's log, the last `lines` first, then as they come, on a connection of their own. `lost` is told before a
   * line how many went by, since these were read too slowly.
   */
  async *logs(server: string, { lines = 0, signal, lost }: Waiting & Followed = {}): AsyncGenerator<string> {
    await using caller = await dial(this.#caller.path, { signal })
    const news = notifications(caller, 'servers/log', { signal })
    const past = await ask(caller, 'servers/logs', { server, lines, follow: true }, { signal })
    yield* past.lines
    for await (const { line, lost: count } of news) {
      if (count > 0) lost?.(count)
      yield line
    }
  }

  /**
   * Questions for an operator: first those that wait, then each as it is asked or settled, on a connection of their own.
   * While this is read, calls that need approval wait for an answer; from when on, `subscribed` is told.
   */
  async *approvals({ signal, subscribed }: Waiting & Subscribing = {}): AsyncGenerator<
    Notification<'approvals/asked' | 'approvals/settled'>
  > {
    await using caller = await dial(this.#caller.path, { signal })
    const news = notificationsOf(caller, ['approvals/asked', 'approvals/settled'], { signal })
    const { pending } = await ask(caller, 'approvals/subscribe', {}, { signal })
    subscribed?.()
    for (const params of pending) yield { method: 'approvals/asked', params }
    yield* news
  }

  /**
   * Records of the journal that match, the last `limit` first, however many answers they take, then as they come, on a connection
   * of their own.
   */
  async *audit({
    signal,
    ...query
  }: Waiting & OperatorMethods['audit/query']['params'] = {}): AsyncGenerator<AuditRecord> {
    await using caller = await dial(this.#caller.path, { signal })
    const news = notifications(caller, 'audit/record', { signal })
    const past = await ask(caller, 'audit/query', { ...query, follow: true }, { signal })
    // What has no room in an answer that begins with the oldest is followed.
    const isFollowed = query.from === 'oldest' && query.before === undefined
    // Not asked where the news come in: nothing is read there while they wait.
    const askFor = (page: AuditQuery): Promise<AuditPage> => this.call('audit/query', page, { signal })
    yield* (isFollowed ? past : await allPages(past, query, askFor)).records
    yield* news
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#caller[Symbol.asyncDispose]()
  }
}

/** Both sides named the protocol in the greeting, by which the result has its shape. */
async function ask<M extends keyof OperatorMethods>(
  caller: Caller,
  method: M,
  params: OperatorMethods[M]['params'],
  waiting: Waiting,
): Promise<OperatorMethods[M]['result']> {
  return expectObject(method, await caller.call(method, params, waiting)) as OperatorMethods[M]['result']
}

function socketOf(runtimeDir: string, role: 'host' | 'operator'): string {
  const { hostSocket, operatorSocket } = runtimePaths(runtimeDir)
  return role === 'host' ? hostSocket : operatorSocket
}

function asHello(value: unknown, path: string): Hello {
  if (typeof value === 'object' && value !== null && Reflect.get(value, 'protocol') === protocolId)
    return value as Hello
  throw new SallyportError(
    'ERR_DAEMON_PROTOCOL',
    `what listens on ${path} does not speak ${protocolId}; use the sallyport of the daemon's version`,
  )
}
