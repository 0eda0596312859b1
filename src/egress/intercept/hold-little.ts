// How much of a message waits here for who is to take it.
import type { Duplex } from 'node:stream'

/** What a message of a connection holds before the connection is read no more, bytes: each may be a chunk, and so an object, of its own */
export const heldBytes = 4096

/** Has the messages that node:http reads from this connection hold little, whatever the connection holds itself. */
export const holdLittle = (connection: Duplex): void => {
  Object.defineProperty(connection, 'readableHighWaterMark', { value: heldBytes, configurable: true })
}
