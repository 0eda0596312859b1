// The bytes of one batch, put together in memory that is there for the next one too.

const usualBytes = 262_144
/** Characters from which on a text is laid out */
const layoutLength = 32_768

/** Used by one batch at a time. */
export class BatchBytes {
  #memory = Buffer.allocUnsafeSlow(usualBytes)
  #length = 0
  /** Added, and not laid out yet: one long text is quicker to lay out than many short ones */
  #text = ''

  /** Begins anew; what a long batch needed is given back. */
  clear(): void {
    this.#length = 0
    this.#text = ''
    if (this.#memory.length > usualBytes) this.#memory = Buffer.allocUnsafeSlow(usualBytes)
  }

  /** Adds a text as UTF-8. */
  add(text: string): void {
    this.#text += text
    if (this.#text.length > layoutLength) this.#layOut()
  }

  /** What was added; good until `clear`. */
  get bytes(): Buffer {
    this.#layOut()
    return this.#memory.subarray(0, this.#length)
  }

  #layOut(): void {
    const most = this.#length + 3 * this.#text.length
    if (most > this.#memory.length) this.#grow(most)
    this.#length += this.#memory.write(this.#text, this.#length)
    this.#text = ''
  }

  #grow(least: number): void {
    const grown = Buffer.allocUnsafeSlow(2 * least)
    this.#memory.copy(grown, 0, 0, this.#length)
    this.#memory = grown
  }
}
