// The bytes of one batch, put together in memory that is there for the next one too.

const usualBytes = 262_144

/** Used by one batch at a time. */
export class BatchBytes {
  #memory = Buffer.allocUnsafeSlow(usualBytes)
  #length = 0

  /** Begins anew; what a long batch needed is given back. */
  clear(): void {
    this.#length = 0
    if (this.#memory.length > usualBytes) this.#memory = Buffer.allocUnsafeSlow(usualBytes)
  }

  /** Adds a text as UTF-8. */
  add(text: string): void {
    const most = this.#length + 3 * text.length
    if (most > this.#memory.length) this.#grow(most)
    this.#length += this.#memory.write(text, this.#length)
  }

  /** What was added; good until `clear`. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length)
  }

  #grow(least: number): void {
    const grown = Buffer.allocUnsafeSlow(2 * least)
    this.bytes.copy(grown)
    this.#memory = grown
  }
}
