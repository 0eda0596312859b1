// What one control connection has the daemon keep: a line that has not ended, calls that are not answered, answers that are not read.
import type { Socket } from 'node:net'
import { SallyportError } from '../errors.ts'
import type { Share } from './allowance.ts'
import type { LineBuffer } from './line-buffer.ts'

/** Counts it, and says when it is more than its uid may have kept. */
export class Holding {
  readonly #socket: Pick<Socket, 'writableLength'>
  readonly #lines: Pick<LineBuffer, 'heldBytes'>
  readonly #share: Share
  #callBytes = 0

  constructor(socket: Pick<Socket, 'writableLength'>, lines: Pick<LineBuffer, 'heldBytes'>, share: Share) {
    this.#socket = socket
    this.#lines = lines
    this.#share = share
  }

  /** Whether there is room for what is held by now. */
  get hasRoom(): boolean {
    return this.#share.take(this.#bytes)
  }

  /** Keeps a call's line until its `end`, or gives the refusal. */
  begin(bytes: number): SallyportError | null {
    this.#callBytes += bytes
    if (this.hasRoom) return null
    this.#callBytes -= bytes
    return busy()
  }

  /** The call is answered. */
  end(bytes: number): void {
    this.#callBytes -= bytes
    this.#share.take(this.#bytes)
  }

  get #bytes(): number {
    return this.#lines.heldBytes + this.#callBytes + this.#socket.writableLength
  }
}

/** What a host is told whose call finds no room. */
export const busy = (): SallyportError =>
  new SallyportError(
    'ERR_BUSY',
    'this user has as many bytes unfinished, unanswered and unread as are kept for one; wait for an answer, or read those that wait',
  )
