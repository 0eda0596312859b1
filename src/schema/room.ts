// How much whoever serves a connection may keep for it: asked by those who keep, answered where connections are counted.
import { SallyportError } from '../errors.ts'

/** What one connection may have kept of what the connections of its uid may have kept together. */
export interface Room {
  /** From now on `held` says what is kept for the connection, bytes; of this server one line of `lineBytes` always has room */
  readonly weigh: (held: () => number, lineBytes?: number) => void
  /** Whether there is room for what is held by now, and for `more` bytes besides */
  readonly hasRoom: (more?: number) => boolean
}

/** Where nobody counts, since there is one host, whose own process this is. */
export const boundless: Room = { weigh: () => undefined, hasRoom: () => true }

/** What a host is told of whatever finds no room. */
export const noRoom = (): SallyportError =>
  new SallyportError(
    'ERR_BUSY',
    'this user has as many bytes unfinished, unanswered and unread as are kept for one; wait for an answer, or read those that wait',
  )
