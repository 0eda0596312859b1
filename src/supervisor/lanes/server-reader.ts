// Reads what one server writes: in lines, each judged and passed on; one that can't be read, or kept, is somebody's error.
import type { SallyportError } from '../../errors.ts'
import type { Together } from '../../lib/together.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { readLine } from '../message/envelope.ts'
import { type Garbage, overlongFactor } from '../message/garbage.ts'
import type { Looked } from '../message/line-look.ts'
import { ServerLines } from '../message/server-lines.ts'
import { endlessLine, unanswerableLine } from '../message/unavailable.ts'
import { TextCheck } from '../message/utf8.ts'
import type { Running } from '../ports.ts'
import type { SessionHolding } from './holding.ts'
import { type Outlet, put } from './outlet.ts'
import type { ServerLane } from './server-lane.ts'

export interface ServerReaderOptions {
  readonly server: ServerSettings
  readonly holding: SessionHolding
  /** Lines that came together are all read before the first is judged */
  readonly judging: Together
  readonly garbage: Garbage
  /** False once the session has let go of the process */
  readonly isServed: () => boolean
  readonly toHost: Outlet
  /** The host would have more to read than there is room for */
  readonly overfilled: () => void
  /** False while the server waits for a host that does not read */
  readonly mayRead: () => boolean
  /** The session cannot go on: not a line more of the server is judged */
  readonly broken: (error: SallyportError) => void
}

export class ServerReader {
  readonly #lane: ServerLane
  readonly #options: ServerReaderOptions
  readonly #lines: ServerLines
  readonly #text = new TextCheck()
  #isOver = false

  constructor(lane: ServerLane, process: Running, options: ServerReaderOptions) {
    this.#lane = lane
    this.#options = options
    this.#lines = new ServerLines(options.server, process, {
      line: (...line) => this.#line(...line),
      tooLong: () => options.judging.now(),
      tooLongEnd: (head, tail, error) => {
        if (!lane.overlong(head, tail, error)) this.#break(unanswerableLine(error))
      },
      mayRead: options.mayRead,
    })
  }

  read(chunk: Buffer): void {
    const { server, judging, toHost } = this.#options
    if (!this.#isRead) return
    this.#lines.push(chunk)
    judging.now()
    toHost.flush()
    if (this.#lines.pending > overlongFactor * server.output.lineBytes) this.#break(endlessLine(server))
  }

  get #isRead(): boolean {
    return !this.#isOver && this.#options.isServed()
  }

  #break(error: SallyportError): void {
    this.#isOver = true
    this.#options.broken(error)
  }

  #line(bytes: Buffer, text: string, start: number, end: number, looked: Looked | null): void {
    if (!this.#isRead) return
    const isText = this.#text.isText(bytes, start, end)
    const said = isText ? readLine(bytes, text, start, end, false) : null
    this.#options.judging.add(() => {
      if (!this.#isRead) return
      const lane = this.#lane
      const before = lane.garbage
      const verdict = isText ? lane.judge(said, text, start, end, looked) : lane.notText(text, start, end)
      const passes = verdict === 'drop' ? 0 : verdict === 'pass' ? end - start : verdict.replacement.length
      if (!this.#options.holding.hasRoomFor(passes)) return this.#options.overfilled()
      put(this.#options.toHost, verdict, bytes, start, end)
      const storm = lane.garbage > before ? this.#options.garbage.count(lane.garbage - before) : null
      if (storm !== null) this.#break(storm)
    })
  }
}
