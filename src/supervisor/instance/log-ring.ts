// The last bytes that a server wrote to stderr, within a bound, however much it writes.

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

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Bytes that were written and are no longer kept. */
  get dropped(): number {
    return this.#dropped
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

  /** The last `count` lines, oldest first; without one that has no end yet where only `ended` ones are asked for. */
  lines(count: number, which: 'all' | 'ended' = 'all'): readonly string[] {
    const all = this.#contents().toString('utf8').split('\n')
    if (all.at(-1) === '' || which === 'ended') all.pop()
    return count > 0 ? all.slice(-count) : []
  }

  /** Calls `listener` for every line that ends from now on, until the returned function is called. */
  listen(listener: (line: string) => void): () => void {
    if (this.#listeners.size === 0) this.#keepUnfinished(this.#contents())
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  #contents(): Buffer {
    const end = this.#start + this.#size
    const wrapped = Math.max(0, end - this.#bytes.length)
    return Buffer.concat([this.#bytes.subarray(this.#start, end), this.#bytes.subarray(0, wrapped)])
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
    this.#keepUnfinished(bytes)
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const line = bytes.toString('utf8', from, end)
      for (const listener of this.#listeners) listener(line)
      from = end + 1
    }
  }

  /** A line without end is cut at 64 KiB, so that a listener costs no more than that. */
  #keepUnfinished(bytes: Buffer): void {
    this.#unfinished = Buffer.from(bytes.subarray(bytes.lastIndexOf(10) + 1).subarray(-65_536))
  }
}
