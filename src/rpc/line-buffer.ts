// Bytes of a control connection into lines, of which no more is kept than may be.
import { SallyportError } from '../errors.ts'

/** Longest line that a control connection may carry, bytes. */
export const maxLineBytes = 16 * 1024 * 1024

/** How much of a line that is dropped is looked at for its id, bytes */
const headBytes = 65_536

/** Splits a byte stream at line feeds, holding at most one unfinished line of `limitBytes`. */
export class LineBuffer {
  readonly #limitBytes: number
  readonly #chunks: Buffer[] = []
  #partial = Buffer.alloc(0)
  #partialBytes = 0
  #isDropping = false

  constructor(limitBytes = maxLineBytes) {
    this.#limitBytes = limitBytes
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  /** Bytes that are kept for the line that has begun and not ended. */
  get heldBytes(): number {
    return this.#partialBytes
  }

  /** The next whole line without its line feed, or null. Throws ERR_MESSAGE_TOO_LARGE once a line exceeds the limit. */
  next(): Buffer | null {
    for (let chunk = this.#chunks.shift(); chunk !== undefined; chunk = this.#chunks.shift()) {
      const end = chunk.indexOf(0x0a)
      if (this.#isDropping) {
        this.#isDropping = end === -1
        if (end !== -1) this.#chunks.unshift(chunk.subarray(end + 1))
        continue
      }
      const piece = end === -1 ? chunk : chunk.subarray(0, end)
      if (this.#partialBytes + piece.length > this.#limitBytes) throw tooLarge(this.#limitBytes)
      if (end === -1) {
        this.#keep(piece)
        continue
      }
      if (end + 1 < chunk.length) this.#chunks.unshift(chunk.subarray(end + 1))
      return this.#finish(piece)
    }
    return null
  }

  /** Gives how the line that has begun begins, and keeps nothing of it from now on. */
  drop(): Buffer {
    const head = Buffer.from(this.#partial.subarray(0, Math.min(this.#partialBytes, headBytes)))
    this.#forget()
    this.#isDropping = true
    return head
  }

  /** Everything that was read and not yet taken as a line; the buffer is empty afterwards. */
  rest(): Buffer {
    const rest = Buffer.concat([this.#partial.subarray(0, this.#partialBytes), ...this.#chunks])
    this.#chunks.length = 0
    this.#forget()
    return rest
  }

  #forget(): void {
    this.#partial = Buffer.alloc(0)
    this.#partialBytes = 0
  }

  // Copies into a buffer that doubles: a peer that sends single bytes costs neither a chunk each nor quadratic time.
  #keep(piece: Buffer): void {
    const needed = this.#partialBytes + piece.length
    if (needed > this.#partial.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#partial.length, 4096))
      this.#partial.copy(grown, 0, 0, this.#partialBytes)
      this.#partial = grown
    }
    piece.copy(this.#partial, this.#partialBytes)
    this.#partialBytes = needed
  }

  #finish(piece: Buffer): Buffer {
    if (this.#partialBytes === 0) return piece
    this.#keep(piece)
    const line = this.#partial.subarray(0, this.#partialBytes)
    this.#forget()
    return line
  }
}

function tooLarge(limitBytes: number): SallyportError {
  return new SallyportError(
    'ERR_MESSAGE_TOO_LARGE',
    `a line on the control connection is longer than ${limitBytes} bytes; send less in one message`,
    { limit_bytes: limitBytes },
  )
}
