// Placeholders in what goes up after a head: swapped where the entry says so, and the end of the connection elsewhere.

/** Returns what goes in a placeholder's place; throws where it may not be swapped. */
export type Fill = (placeholder: string) => string

/** Finds placeholders in bytes that come in pieces, and holds back no more than what may be the beginning of one. */
export class PlaceholderStream {
  readonly #placeholders: readonly Buffer[]
  readonly #fill: Fill
  #held: Buffer = Buffer.alloc(0)

  constructor(placeholders: readonly string[], fill: Fill) {
    this.#placeholders = placeholders.map((it) => Buffer.from(it))
    this.#fill = fill
  }

  /** The bytes that may go on, swapped; throws what `fill` throws. */
  push(chunk: Uint8Array): Buffer {
    const bytes =
      this.#held.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
        : Buffer.concat([this.#held, chunk])
    const parts: Buffer[] = []
    let at = 0
    for (let next = this.#first(bytes, at); next !== null; next = this.#first(bytes, at)) {
      parts.push(bytes.subarray(at, next.at), Buffer.from(this.#fill(next.placeholder.toString())))
      at = next.at + next.placeholder.length
    }
    const end = bytes.length - this.#beginning(bytes.subarray(at))
    this.#held = Buffer.from(bytes.subarray(end))
    if (parts.length === 0) return bytes.subarray(0, end)
    return Buffer.concat([...parts, bytes.subarray(at, end)])
  }

  /** What was held back. */
  flush(): Buffer {
    const held = this.#held
    this.#held = Buffer.alloc(0)
    return held
  }

  #first(bytes: Buffer, from: number): { readonly at: number; readonly placeholder: Buffer } | null {
    let first: { readonly at: number; readonly placeholder: Buffer } | null = null
    for (const placeholder of this.#placeholders) {
      const at = bytes.indexOf(placeholder, from)
      if (at >= 0 && (first === null || at < first.at)) first = { at, placeholder }
    }
    return first
  }

  // How many bytes at the end are the beginning of a placeholder.
  #beginning(bytes: Buffer): number {
    let most = 0
    for (const placeholder of this.#placeholders)
      for (let length = Math.min(placeholder.length - 1, bytes.length); length > most; length--)
        if (bytes.subarray(bytes.length - length).equals(placeholder.subarray(0, length))) most = length
    return most
  }
}

/** Returns how a value is written in a body of that type. */
export const writerFor = (contentType: string): ((value: string) => string) => {
  if (/[/+]json\b/i.test(contentType)) return (value) => JSON.stringify(value).slice(1, -1)
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return encodeURIComponent
  return (value) => value
}
