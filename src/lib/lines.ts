// Cuts a byte stream into lines without copying, within a bound, and finds its feet again behind a line that is too long.

/** Who gets the lines. All offsets are byte offsets. */
export interface LineSink {
  /** One line from `start` to `end`, where its line feed stands; `text` is the latin1 reading of all of `bytes` */
  line(bytes: Buffer, text: string, start: number, end: number): void
  /** A line just went over the limit; `head` is its beginning. What follows of it is dropped as it comes */
  overlong(head: Buffer): void
  /** The line that was too long has ended; `tail` is its last bytes, `size` its length */
  overlongEnd(tail: Buffer, size: number): void
}

const lineFeed = 10
const headBytes = 65_536
const tailBytes = 256
const nothing = Buffer.alloc(0)

/** Feeds a `LineSink`; never holds more than `limit` bytes, however small the pieces in which they come. */
export class LineSplitter {
  readonly #limit: number
  readonly #sink: LineSink
  #held: Buffer = nothing
  #size = 0
  #dropped = 0
  #tail: Buffer = nothing

  constructor(limit: number, sink: LineSink) {
    this.#limit = limit
    this.#sink = sink
  }

  /** Bytes of the line that has begun and not ended. */
  get pending(): number {
    return this.#size + this.#dropped
  }

  /** What is kept of it. */
  get held(): Buffer {
    return this.#held.subarray(0, this.#size)
  }

  /** Takes no more of the lines that the chunk has whole than `most`; gives what it did not take. */
  push(chunk: Buffer, most = Infinity): Buffer {
    let from = 0
    if (this.pending > 0) {
      const feed = chunk.indexOf(lineFeed)
      if (feed < 0) {
        this.#hold(chunk)
        return nothing
      }
      this.#finish(chunk.subarray(0, feed + 1))
      from = feed + 1
    }
    const last = chunk.lastIndexOf(lineFeed)
    if (last >= from) {
      from = this.#whole(chunk, from, last, most)
      if (from <= last) return chunk.subarray(from)
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from))
    return nothing
  }

  /** Gives where the first line begins that it did not take. */
  #whole(chunk: Buffer, from: number, last: number, most: number): number {
    const text = chunk.toString('latin1', 0, last + 1)
    let start = from
    for (let left = most; start <= last && left > 0; left--) {
      const end = text.indexOf('\n', start)
      if (end - start > this.#limit) {
        this.#sink.overlong(chunk.subarray(start, Math.min(end, start + headBytes)))
        this.#sink.overlongEnd(chunk.subarray(Math.max(start, end - tailBytes), end), end - start)
      } else this.#sink.line(chunk, text, start, end)
      start = end + 1
    }
    return start
  }

  /** Lets go of the line that has begun, as if it were too long, and gives how it begins; what follows of it is dropped. */
  drop(): Buffer {
    return this.#letGo(nothing)
  }

  #hold(piece: Buffer): void {
    if (this.#dropped > 0) return this.#drop(piece)
    if (this.#size + piece.length > this.#limit) return this.#sink.overlong(this.#letGo(piece))
    this.#append(piece)
  }

  #letGo(piece: Buffer): Buffer {
    const held = this.#held.subarray(0, this.#size)
    const head = Buffer.concat([held.subarray(0, headBytes), piece.subarray(0, headBytes)])
    this.#tail = Buffer.from(held.subarray(-tailBytes))
    this.#dropped = this.#size
    this.#held = nothing
    this.#size = 0
    this.#drop(piece)
    return head.subarray(0, headBytes)
  }

  #append(piece: Buffer): void {
    const size = this.#size + piece.length
    if (size > this.#held.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#limit + 1, Math.max(4 * size, 4096)))
      this.#held.copy(grown, 0, 0, this.#size)
      this.#held = grown
    }
    piece.copy(this.#held, this.#size)
    this.#size = size
  }

  #drop(piece: Buffer): void {
    this.#dropped += piece.length
    this.#tail = Buffer.concat([this.#tail.subarray(-tailBytes), piece.subarray(-tailBytes)]).subarray(
      -tailBytes,
    )
  }

  /** `end` closes the held line and includes its line feed. */
  #finish(end: Buffer): void {
    if (this.#dropped === 0 && this.#size + end.length - 1 > this.#limit) this.#hold(end.subarray(0, -1))
    else if (this.#dropped > 0) this.#drop(end.subarray(0, -1))
    if (this.#dropped > 0) {
      const [tail, size] = [this.#tail, this.#dropped]
      this.#dropped = 0
      this.#tail = nothing
      return this.#sink.overlongEnd(tail, size)
    }
    this.#append(end)
    const bytes = this.#held.subarray(0, this.#size)
    this.#held = nothing
    this.#size = 0
    this.#sink.line(bytes, bytes.toString('latin1'), 0, bytes.length - 1)
  }
}
