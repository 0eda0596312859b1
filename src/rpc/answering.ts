// What answers on a socket, as connections see it, and what a connection offers to it.
import type { Duplex } from 'node:stream'
import type { RawJson } from '../lib/raw-json.ts'
import type { Room } from '../schema/room.ts'
import type { Notifications, Principal } from './protocol.ts'

/** A call as its handler sees it: who asks, until when, and how to tell more than one answer. */
export interface Call {
  readonly principal: Principal
  /** Aborted when the peer is gone or has cancelled the call */
  readonly signal: AbortSignal
  /** The text of one member of `params` as the peer wrote it, or null when absent */
  text(member: string): RawJson | null
  /** Aborts another call of this connection by its request id; false when none is in flight */
  cancel(requestId: string | number): boolean
  /** Starts work that lives until the connection ends, once the answer is written. Throws ERR_BUSY where there is much of that already. */
  afterReply(task: (stream: Notifier) => Promise<void>): void
}

/** Notifications to one peer, as fast as it reads and no faster. */
export interface Notifier {
  readonly signal: AbortSignal
  notify<M extends keyof Notifications>(method: M, params: Notifications[M]): Promise<void>
  /** Notifications that are laid out already, any number of lines, in one write */
  pass(lines: Buffer): Promise<void>
}

/** A session that takes the connection over, and its room; `head` is what was read behind the request. */
export interface HandOver {
  readonly result: unknown
  take(stream: Duplex, head: Buffer, room: Room): void
  /** The peer was gone before the session could take over */
  abandon(): void
}

/** What is served on a socket. Both throw SallyportErrors; anything else is logged and answered as ERR_INTERNAL. */
export interface Service {
  call(method: string, params: unknown, call: Call): Promise<unknown>
  /** Serves the one method that ends the control protocol on its connection, `session/attach` */
  attach(params: unknown, call: Call): Promise<HandOver>
}
