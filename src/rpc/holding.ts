// What one control connection has the daemon keep: a line that has not ended, calls that are not answered, answers that are not read.
import type { Socket } from 'node:net'
import type { SallyportError } from '../errors.ts'
import { noRoom, type Room } from '../schema/room.ts'
import type { LineBuffer } from './line-buffer.ts'

/** Counts it, and says when it is more than its uid may have kept. */
export class Holding {
  readonly #room: Room
  #callBytes = 0

  constructor(
    socket: Pick<Socket, 'destroyed' | 'writableLength'>,
    lines: Pick<LineBuffer, 'heldBytes'>,
    room: Room,
  ) {
    this.#room = room
    const unreadBytes = (): number => (socket.destroyed ? 0 : socket.writableLength)
    room.weigh(() => lines.heldBytes + this.#callBytes + unreadBytes())
  }

  /** Whether there is room for what is held by now. */
  get hasRoom(): boolean {
    return this.#room.hasRoom()
  }

  /** Keeps a call's line until its `end`, or gives the refusal. */
  begin(bytes: number): SallyportError | null {
    this.#callBytes += bytes
    if (this.hasRoom) return null
    this.#callBytes -= bytes
    return noRoom()
  }

  /** The call is answered. */
  end(bytes: number): void {
    this.#callBytes -= bytes
  }
}
