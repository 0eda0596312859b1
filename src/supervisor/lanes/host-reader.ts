// Reads what one host writes: in lines, each judged and passed on, no more of them in one turn than leaves others theirs.
import { SallyportError } from '../../errors.ts'
import { LineSplitter } from '../../lib/lines.ts'
import type { Together } from '../../lib/together.ts'
import { noRoom } from '../../schema/room.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { readLine } from '../message/envelope.ts'
import { readHead } from '../message/unread.ts'
import { TextCheck } from '../message/utf8.ts'
import type { SessionHolding } from './holding.ts'
import type { HostLane } from './host-lane.ts'
import { type Outlet, put } from './outlet.ts'

/** Lines that are read in one turn: a refusal is many times as long as the shortest line that earns one */
const linesAtOnce = 64

export interface HostReaderOptions {
  readonly server: ServerSettings
  readonly holding: SessionHolding
  /** Lines that came together are all read before the first is judged */
  readonly judging: Together
  /** What requests are refused with once nothing more is taken from the host, else null */
  readonly closed: () => SallyportError | null
  /** True while what the host says goes straight to a server */
  readonly isFlowing: () => boolean
  readonly toServer: Outlet
}

export class HostReader {
  readonly #lane: HostLane
  readonly #options: HostReaderOptions
  readonly #lines: LineSplitter
  readonly #text = new TextCheck()

  constructor(lane: HostLane, options: HostReaderOptions) {
    this.#lane = lane
    this.#options = options
    const { lineBytes } = options.server.output
    this.#lines = new LineSplitter(lineBytes, {
      line: (bytes, text, start, end) => this.#line(bytes, text, start, end),
      overlong: (head) => {
        options.judging.now()
        const message = `the line is longer than output.line_bytes (${lineBytes}); send less or raise it`
        this.#refuse(head, new SallyportError('ERR_MESSAGE_TOO_LARGE', message))
      },
      overlongEnd: () => undefined,
    })
  }

  /** Bytes that are kept of a line that has not ended. */
  get held(): number {
    return this.#lines.held.length
  }

  /** Gives what is to be read in another turn. */
  read(chunk: Buffer): Buffer {
    const { judging, toServer, holding } = this.#options
    const rest = this.#lines.push(chunk, linesAtOnce)
    judging.now()
    toServer.flush()
    if (!holding.fits(this.#lines.held.length)) this.#refuse(this.#lines.drop(), noRoom())
    return rest
  }

  #line(bytes: Buffer, text: string, start: number, end: number): void {
    const isText = this.#text.isText(bytes, start, end)
    const said = isText ? readLine(bytes, text, start, end, true) : null
    // Each line's own, and no more: of what all have in common none holds anything.
    this.#options.judging.add(() => {
      const { closed, isFlowing, toServer } = this.#options
      const error = closed()
      if (error !== null) return said?.kind === 'request' ? this.#lane.refuse(error, said.id) : undefined
      if (!isText) return this.#lane.refuse(new SallyportError('ERR_PARSE', 'the line is not UTF-8'))
      put(toServer, this.#lane.judge(said, text, start, end), bytes, start, end)
      // What is held is held line by line: a probe goes out alone.
      if (!isFlowing()) toServer.flush()
    })
  }

  #refuse(head: Buffer, error: SallyportError): void {
    const { id, isAnswer } = readHead(head.toString('latin1'))
    if (isAnswer) this.#lane.refuse(error, null, id)
    else this.#lane.refuse(error, id)
  }
}
