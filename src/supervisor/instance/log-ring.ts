// The last bytes that a server wrote to stderr, within a bound, however much it writes.

/** Keeps the newest `limit` bytes and counts the rest. Listeners get whole lines as they come. */
export class LogRing {
  #limit: number
  readonly #listeners = new Set<(line: string) => void>()
  #bytes = Buffer.alloc(0)
  #start = 0
  #size = 0
  #dropped = 0
  #unfinished = ''

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

  /** The last `count` lines, oldest first. */
  lines(count: number): readonly string[] {
    const all = this.#contents().toString('utf8').split('\n')
    if (all.at(-1) === '') all.pop()
    return count > 0 ? all.slice(-count) : []
  }

  /** Calls `listener` for every line from now on, until the returned function is called. */
  listen(listener: (line: string) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#unfinished = ''
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

  /** A line without end is cut at 64 KiB, so that a listener costs no more than that. */
  #tell(chunk: Buffer): void {
    const lines = (this.#unfinished + chunk.toString('utf8')).split('\n')
    this.#unfinished = (lines.pop() ?? '').slice(-65_536)
    for (const line of lines) for (const listener of this.#listeners) listener(line)
  }
}
