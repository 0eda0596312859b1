// What one session has the daemon keep for its host, counted against what the connections of the host's uid may have kept.
import { boundless, type Room } from '../../schema/room.ts'

/** What is so short that one can't do much with it: nobody counts for it, bytes */
const shortBytes = 65_536

/** Each part of the session that keeps something says how much that is. */
export class SessionHolding {
  readonly #parts: (() => number)[] = []
  #room: Room = boundless

  /** A further part, and the bytes that it keeps whenever it is asked. */
  add(held: () => number): void {
    this.#parts.push(held)
  }

  /** The host is there: from now on it is counted. */
  within(room: Room, lineBytes: number): void {
    this.#room = room
    room.weigh(() => this.#parts.reduce((bytes, held) => bytes + held(), 0), lineBytes)
  }

  /** Whether what is held by now, of which one part keeps `bytes`, has room. */
  fits(bytes: number): boolean {
    return bytes <= shortBytes || this.#room.hasRoom()
  }

  /** Whether `bytes` may be kept besides. */
  hasRoomFor(bytes: number): boolean {
    return bytes <= shortBytes || this.#room.hasRoom(bytes)
  }
}
