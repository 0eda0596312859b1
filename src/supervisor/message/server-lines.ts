// What one server writes, in lines, no more of them in one turn than leaves others theirs; what has begun and not ended is counted
// together with that of all servers. A blank line is nothing.
import type { Readable } from 'node:stream'
import type { SallyportError } from '../../errors.ts'
import { skipSpace } from '../../lib/json-scan.ts'
import { LineSplitter } from '../../lib/lines.ts'
import type { Redactor } from '../../schema/credentials.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { type HalfLine, halfLines } from './half-lines.ts'
import { lookBytes, type Looked, LineLook } from './line-look.ts'
import { crowdedOut, overlongLine } from './unavailable.ts'

/** Lines that are read in one turn; more wait for the next: a line of two bytes costs what a longer one does */
const linesAtOnce = 1024

const nothing = Buffer.alloc(0)

/** Who says the lines, and knows the secrets that may be in none of them; null where there are none. */
interface Speaker {
  readonly stdout: Readable
  readonly redactor: Redactor | null
}

export interface ServerLineSink {
  /**
   * One line that is not blank, from `start` to `end`, where its line feed stands; `text` is the latin1 reading of all of
   * `bytes`, `looked` what was found of the server's secrets in a line that is long, or null where nobody has looked yet
   */
  line(bytes: Buffer, text: string, start: number, end: number, looked: Looked | null): void
  /** The line that has begun will not be read to its end */
  tooLong(error: SallyportError): void
  /** It has ended: that is how it began, and how it ended */
  tooLongEnd(head: string, tail: string, error: SallyportError): void
  /** False where the server is not to be read at present: whoever reads it next reads what waited for its turn */
  mayRead?(): boolean
}

export class ServerLines implements HalfLine {
  readonly #server: ServerSettings
  readonly #stdout: Readable
  readonly #look: LineLook | null
  readonly #sink: ServerLineSink
  readonly #lines: LineSplitter
  /** How a line begins that is not read to its end, and why it is not */
  #begun: { readonly head: string; readonly error: SallyportError } | null = null

  constructor(server: ServerSettings, process: Speaker, sink: ServerLineSink) {
    this.#server = server
    this.#stdout = process.stdout
    this.#look = process.redactor === null ? null : new LineLook(process.redactor)
    this.#sink = sink
    this.#lines = new LineSplitter(server.output.lineBytes, {
      line: (bytes, text, start, end) => {
        const looked = this.#look?.ended(bytes.subarray(start, end)) ?? null
        if (skipSpace(text, start) < end) sink.line(bytes, text, start, end, looked)
      },
      overlong: (head) => this.#dropped(head, overlongLine(server)),
      overlongEnd: (tail) => {
        const { head, error } = this.#begun ?? { head: '', error: overlongLine(server) }
        this.#begun = null
        sink.tooLongEnd(head, tail.toString('latin1'), error)
      },
    })
    this.#stdout.once('close', () => halfLines.weigh(this, 0))
  }

  /** Bytes of the line that has begun and not ended, kept or not. */
  get pending(): number {
    return this.#lines.pending
  }

  push(chunk: Buffer): void {
    const [piece, later] = this.#look === null ? [chunk, nothing] : cutAt(chunk, lookBytes)
    const rest = this.#lines.push(piece, linesAtOnce)
    halfLines.weigh(this, this.#lines.held.length)
    this.#look?.begun(this.#lines.held)
    if (rest.length + later.length > 0) this.#stdout.pause().unshift(Buffer.concat([rest, later]))
    // Much more may wait in the kernel, and would be read in this turn
    else if (this.#look !== null && chunk.length > lookBytes / 2) this.#stdout.pause()
    else return
    setImmediate(() => this.#sink.mayRead?.() !== false && this.#stdout.resume())
  }

  letGo(): void {
    this.#dropped(this.#lines.drop(), crowdedOut(this.#server))
  }

  #dropped(head: Buffer, error: SallyportError): void {
    this.#look?.dropped()
    this.#begun = { head: head.toString('latin1'), error }
    this.#sink.tooLong(error)
  }
}

const cutAt = (chunk: Buffer, most: number): readonly [Buffer, Buffer] => [
  chunk.subarray(0, most),
  chunk.subarray(most),
]
