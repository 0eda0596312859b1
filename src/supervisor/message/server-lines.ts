// What one server writes, in lines, no more of them in one turn than leaves others theirs; what has begun and not ended is counted
// together with that of all servers.
import type { Readable } from 'node:stream'
import type { SallyportError } from '../../errors.ts'
import { type LineSink, LineSplitter } from '../../lib/lines.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { type HalfLine, halfLines } from './half-lines.ts'
import { crowdedOut, overlongLine } from './unavailable.ts'

/** Lines that are read in one turn; more wait for the next: a line of two bytes costs what a longer one does */
const linesAtOnce = 1024

export interface ServerLineSink extends Pick<LineSink, 'line'> {
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
  readonly #sink: ServerLineSink
  readonly #lines: LineSplitter
  /** How a line begins that is not read to its end, and why it is not */
  #begun: { readonly head: string; readonly error: SallyportError } | null = null

  constructor(server: ServerSettings, stdout: Readable, sink: ServerLineSink) {
    this.#server = server
    this.#stdout = stdout
    this.#sink = sink
    this.#lines = new LineSplitter(server.output.lineBytes, {
      line: sink.line,
      overlong: (head) => this.#dropped(head, overlongLine(server)),
      overlongEnd: (tail) => {
        const { head, error } = this.#begun ?? { head: '', error: overlongLine(server) }
        this.#begun = null
        sink.tooLongEnd(head, tail.toString('latin1'), error)
      },
    })
    stdout.once('close', () => halfLines.weigh(this, 0))
  }

  /** Bytes of the line that has begun and not ended, kept or not. */
  get pending(): number {
    return this.#lines.pending
  }

  push(chunk: Buffer): void {
    const rest = this.#lines.push(chunk, linesAtOnce)
    halfLines.weigh(this, this.#lines.held)
    if (rest.length === 0) return
    const stdout = this.#stdout.pause()
    stdout.unshift(rest)
    setImmediate(() => this.#sink.mayRead?.() !== false && stdout.resume())
  }

  letGo(): void {
    this.#dropped(this.#lines.drop(), crowdedOut(this.#server))
  }

  #dropped(head: Buffer, error: SallyportError): void {
    this.#begun = { head: head.toString('latin1'), error }
    this.#sink.tooLong(error)
  }
}
