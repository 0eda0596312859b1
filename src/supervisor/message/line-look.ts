// Looks for secrets in a long line piece by piece, as it comes, so that nobody waits while all of it is looked through at once.
import type { RedactingStream, Redactor } from '../../schema/credentials.ts'

/** What of a line is looked through in one turn, bytes; a line that is no longer is not looked at here */
export const lookBytes = 65_536

/** What was found of secrets in a line. */
export interface Looked {
  /** The line without them; empty where there are none, since it is as it came then */
  readonly text: string
  /** Names of the credentials whose they were */
  readonly found: readonly string[]
}

/** Follows one line after the other. */
export class LineLook {
  readonly #redactor: Redactor
  #stream: RedactingStream | null = null
  /** Bytes that have been looked at */
  #to = 0
  /** Bytes before the piece in which the first secret was found */
  #cleanTo = 0
  /** What follows those, without secrets */
  #rest: Uint8Array[] = []

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Looks at what has come of the line by now, but for what is less than a piece. */
  begun(line: Buffer): void {
    while (line.length - this.#to >= lookBytes) this.#look(line.subarray(this.#to, this.#to + lookBytes))
  }

  /** The line has ended: what was found, or null where it was too short to be looked at. */
  ended(line: Buffer): Looked | null {
    if (this.#stream === null) return null
    const stream = this.#look(line.subarray(this.#to))
    this.#keep(stream, stream.flush())
    const found = [...stream.found]
    const text = found.length === 0 ? '' : Buffer.concat([line.subarray(0, this.#cleanTo), ...this.#rest])
    this.dropped()
    return { text: text.toString(), found }
  }

  /** Nobody reads the line to its end. */
  dropped(): void {
    this.#stream = null
    this.#to = 0
    this.#cleanTo = 0
    this.#rest = []
  }

  #look(piece: Buffer): RedactingStream {
    const stream = (this.#stream ??= this.#redactor.stream())
    this.#to += piece.length
    this.#keep(stream, stream.push(piece))
    return stream
  }

  #keep({ found }: RedactingStream, bytes: Uint8Array): void {
    if (found.size === 0) this.#cleanTo += bytes.length
    else this.#rest.push(Buffer.from(bytes))
  }
}
