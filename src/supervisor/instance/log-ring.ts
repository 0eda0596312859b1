// The last bytes that a server wrote to stderr, within a bound, however much it writes.

/** Most of what is told at once, bytes of JSON: a client's longest line has room for it */
const toldBytes = 8 * 1024 * 1024
/** Most of one line, bytes: all escaped, it takes six times as much */
const lineBytes = 1_048_576
/** Most that is kept of a line without end for who listens, bytes */
const unfinishedBytes = 65_536

/** The last lines, as far as they have room in an answer. */
interface Told {
  /** Oldest first */
  readonly lines: readonly string[]
  /** Bytes before them that are no longer kept, or had no room */
  readonly dropped: number
}

/** Keeps the newest `limit` bytes and counts the rest. Listeners get whole lines as they come. */
export class LogRing {
  #limit: number
  readonly #listeners = new Set<(line: string) => void>()
  #bytes = Buffer.alloc(0)
  #start = 0
  #size = 0
  #dropped = 0
  /** What came of a line that has no end yet, where somebody listens */
  #unfinished = Buffer.alloc(0)
  #isUnfinishedWhole = true

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Keeps another number of bytes from now on, the newest of what there is. */
  resize(limit: number): void {
    const kept = Buffer.from(this.#contents().subarray(-limit))
    this.#dropped += this.#size - kept.length
    this.#limit = limit
    this.#bytes = kept
    this.#start = 0
    this.#size = kept.length
  }

  /** Returns how many bytes, of this chunk or of those before it, are no longer kept because of it. */
  append(chunk: Buffer): number {
    if (this.#listeners.size > 0) this.#tell(chunk)
    const kept = chunk.subarray(-this.#limit)
    this.#reserve(kept.length)
    const capacity = this.#bytes.length
    const lost = Math.max(0, this.#size + kept.length - capacity)
    const dropped = chunk.length - kept.length + lost
    this.#dropped += dropped
    this.#start = (this.#start + lost) % capacity
    this.#size -= lost
    const at = (this.#start + this.#size) % capacity
    const first = kept.copy(this.#bytes, at)
    kept.copy(this.#bytes, 0, first)
    this.#size += kept.length
    return dropped
  }

  /**
   * The last `count` lines; without one that has no end yet where only `ended` ones are asked for.
   *
   * It looks no further back than to what is told: the ring may be a thousand times as long.
   */
  last(count: number, which: 'all' | 'ended' = 'all'): Told {
    const lines: string[] = []
    const floor = Math.max(0, this.#size - toldBytes)
    let end = this.#lastEnd(which, floor)
    let [start, room] = [end, toldBytes]
    while (end >= floor && lines.length < count) {
      const from = this.#feedBefore(end, floor) + 1
      const isWhole = from > floor || floor === 0
      if (!isWhole && lines.length > 0) break
      const line = textOf(this.#slice(from, end), isWhole)
      room -= costOf(line)
      if (room < 0) break
      lines.push(line)
      start = from
      end = from - 1
    }
    const isCut = end >= 0 && lines.length < count
    return { lines: lines.toReversed(), dropped: this.#dropped + (isCut ? start : 0) }
  }

  /** Calls `listener` for every line that ends from now on, until the returned function is called. */
  listen(listener: (line: string) => void): () => void {
    if (this.#listeners.size === 0) this.#beginUnfinished()
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  #contents(): Buffer {
    return this.#slice(0, this.#size)
  }

  /** A part of what is kept, counted from the oldest byte; copied only where it lies at both ends. */
  #slice(from: number, to: number): Buffer {
    const first = this.#part(0, from, to)
    const second = this.#part(1, from, to)
    if (second.length === 0) return first
    return first.length === 0 ? second : Buffer.concat([first, second])
  }

  /** What of it lies behind the oldest byte, or at the beginning, where it goes on. */
  #part(which: 0 | 1, from: number, to: number): Buffer {
    const length = this.#bytes.length - this.#start
    if (which === 0)
      return this.#bytes.subarray(this.#start + Math.min(from, length), this.#start + Math.min(to, length))
    return this.#bytes.subarray(Math.max(0, from - length), Math.max(0, to - length))
  }

  /** Where the last line feed before `to` lies, or `floor - 1` where none does from `floor` on. */
  #feedBefore(to: number, floor: number): number {
    const second = this.#part(1, floor, to).lastIndexOf(10)
    const length = this.#bytes.length - this.#start
    if (second >= 0) return Math.max(floor, length) + second
    return floor + this.#part(0, floor, to).lastIndexOf(10)
  }

  /** Where the last line ends that is asked for, before its line feed; before `floor` where none does. */
  #lastEnd(which: 'all' | 'ended', floor: number): number {
    const feed = this.#feedBefore(this.#size, floor)
    return which === 'ended' || feed === this.#size - 1 ? feed : this.#size
  }

  /** Grows by doubling up to the limit, so that a quiet server costs nothing. */
  #reserve(more: number): void {
    const wanted = Math.min(this.#limit, this.#size + more)
    if (wanted <= this.#bytes.length && this.#bytes.length > 0) return
    const grown = Buffer.alloc(
      Math.max(1, Math.min(this.#limit, Math.max(wanted, this.#bytes.length * 2, 4096))),
    )
    this.#contents().copy(grown)
    this.#bytes = grown
    this.#start = 0
  }

  /** Characters may lie in two chunks, as lines do: nothing is text before its line has ended. */
  #tell(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#unfinished, chunk])
    let isWhole = this.#isUnfinishedWhole
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const line = textOf(bytes.subarray(from, end), isWhole)
      for (const listener of this.#listeners) listener(line)
      isWhole = true
      from = end + 1
    }
    this.#keepUnfinished(bytes.subarray(from), isWhole)
  }

  #beginUnfinished(): void {
    const last = this.#slice(Math.max(0, this.#size - unfinishedBytes - 1), this.#size)
    this.#keepUnfinished(last.subarray(last.lastIndexOf(10) + 1), true)
  }

  /** A line without end is cut at 64 KiB, so that a listener costs no more than that. */
  #keepUnfinished(line: Buffer, isWhole: boolean): void {
    this.#unfinished = Buffer.from(line.subarray(-unfinishedBytes))
    this.#isUnfinishedWhole = isWhole && line.length <= unfinishedBytes
  }
}

const cutMark = '[the beginning of this line is left out] '

/** The end of a line that is too long, or not whole already, behind a word that says so. */
function textOf(line: Buffer, isWhole: boolean): string {
  const text = line.toString('utf8', Math.max(0, line.length - lineBytes))
  return isWhole && line.length <= lineBytes ? text : cutMark + text
}

/** Bytes of JSON, with a comma. */
const costOf = (line: string): number => Buffer.byteLength(JSON.stringify(line)) + 1
