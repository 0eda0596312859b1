// The newest records as they stand in the file, for as long as somebody follows: whoever is up with them needs no file for the next.

/** Most that is kept, bytes */
const mostKept = 1_048_576

/** A record's line, without its newline. */
export interface Line {
  readonly text: string
  readonly bytes: number
}

/** Lines of records that count, by their numbers, without a gap. */
export class Newest {
  #lines: Line[] = []
  /** Number of the record before the first of them */
  #before = 0
  #bytes = 0
  #followers = 0

  /** What counts from now on is kept until this is disposed of; without followers nothing is. */
  follow(): Disposable {
    this.#followers += 1
    return {
      [Symbol.dispose]: () => {
        this.#followers -= 1
        if (this.#followers === 0) this.#beginBehind(0)
      },
    }
  }

  /** Adds a batch: a line with its newline for each record behind the record `after`. */
  add(after: number, batch: Buffer): void {
    if (this.#followers === 0) return
    if (after !== this.#before + this.#lines.length) this.#beginBehind(after)
    for (const text of batch.toString('utf8', 0, batch.length - 1).split('\n')) {
      const line = { text, bytes: Buffer.byteLength(text) }
      this.#lines.push(line)
      this.#bytes += line.bytes
    }
    this.#dropOldest()
  }

  /** The next lines behind the record `after`, as many as fit in so many bytes, or one; null where others may lie between. */
  behind(after: number, limitBytes: number): readonly Line[] | null {
    const from = after - this.#before
    if (from < 0 || from >= this.#lines.length) return null
    let [to, bytes] = [from, 0]
    while (to < this.#lines.length && (bytes += this.#lines[to]?.bytes ?? 0) <= limitBytes) to += 1
    return this.#lines.slice(from, Math.max(to, from + 1))
  }

  #beginBehind(seq: number): void {
    this.#lines = []
    this.#before = seq
    this.#bytes = 0
  }

  #dropOldest(): void {
    let count = 0
    for (; this.#bytes > mostKept; count += 1) this.#bytes -= this.#lines[count]?.bytes ?? 0
    this.#lines.splice(0, count)
    this.#before += count
  }
}
