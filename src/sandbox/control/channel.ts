// The supervisor's end of one sandbox's control channel.
import type { Duplex } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { decodeReport, encodeOrder, FrameReader, type Order, type Report } from './control.ts'

// init has four things to say in its whole life.
const maxReports = 4

/** Sends orders and hands out what init reports, in order. What comes after a malformed frame is thrown away. */
export class ControlChannel {
  /** Resolves when no process of the sandbox holds the other end any more. Never rejects */
  readonly closed: Promise<void>
  readonly #socket: Duplex
  readonly #reader = new FrameReader()
  readonly #reports: Report[] = []
  #count = 0
  #failure: SallyportError | null = null
  #isClosed = false
  #wake: () => void = () => {}

  constructor(socket: Duplex) {
    this.#socket = socket
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    const close = (): void => {
      this.#isClosed = true
      this.#wake()
      resolve()
    }
    // A container's init may connect and end while the engine still answers that it was started.
    if (socket.closed) close()
    else socket.once('close', close)
  }

  /** True once `closed` has resolved. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** How many reports have come. */
  get heard(): number {
    return this.#count
  }

  /** Sends the orders in one write; on a lost channel nothing happens, since `closed` already says it. */
  send(...orders: readonly Order[]): void {
    if (this.#socket.writable) this.#socket.write(Buffer.concat(orders.map(encodeOrder)))
  }

  /** Sends nothing more, which init takes as the loss of its supervisor; what it still says is read. */
  end(): void {
    this.#socket.end()
  }

  /** Returns the next report, or null when the channel is lost. Throws ERR_SANDBOX_SETUP on a malformed one. One caller at a time. */
  async next(): Promise<Report | null> {
    for (;;) {
      const report = this.#reports.shift()
      if (report !== undefined) return report
      if (this.#failure !== null) throw this.#failure
      if (this.#isClosed) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  #take(chunk: Buffer): void {
    if (this.#failure !== null) return
    try {
      for (const frame of this.#reader.push(chunk)) this.#keep(decodeReport(frame))
    } catch (error) {
      this.#failure = SallyportError.from(error)
    }
    this.#wake()
  }

  #keep(report: Report): void {
    this.#count += 1
    if (this.#count > maxReports)
      throw new SallyportError('ERR_SANDBOX_SETUP', `init reported more than ${maxReports} times`, {
        step: 'gate',
      })
    this.#reports.push(report)
  }
}
