// One accepted control connection: requests in, answers out, all of it bounded; or handed over to an MCP session.
import type { Socket } from 'node:net'
import { enough, SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import { ReplacedError } from '../lib/late.ts'
import { isShortage } from '../lib/missing.ts'
import { errorLine, idIn, notificationLine, noId, parseRequest, resultLine } from './framing.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { LineBuffer } from './line-buffer.ts'
import type { Request } from './framing.ts'
import { Holding } from './holding.ts'
import { InFlight } from './in-flight.ts'
import { noRoom } from '../schema/room.ts'
import type { Share } from './allowance.ts'
import type { Principal } from './protocol.ts'
import type { Call, Notifier, Service } from './answering.ts'

/** Lines that are read in one turn; more wait for the next: a line of one letter is parsed, and refused at length, as any other is */
const linesAtOnce = 64

interface Options {
  readonly service: Service
  readonly principal: Principal
  readonly limits: ConnectionLimits
  /** Its part of what its uid may have the daemon keep */
  readonly share: Share
  readonly log: Logger
}

/** Serves the control protocol on a paused socket until either side ends it or a session takes it over. */
export function serveConnection(socket: Socket, options: Options): void {
  new Connection(socket, options).open()
}

class Connection {
  readonly #socket: Socket
  readonly #options: Options
  readonly #lines: LineBuffer
  readonly #holding: Holding
  readonly #gone = new AbortController()
  readonly #inFlight: InFlight
  #streams = 0
  /** Lines wait for the next turn */
  #isWaiting = false
  /** The peer will send no more; what it has sent may wait to be read */
  #hasEnded = false
  #state: 'open' | 'attaching' | 'ending' | 'left' = 'open'

  readonly #onData = (chunk: Buffer): void => {
    this.#lines.push(chunk)
    this.#advance()
  }
  readonly #onDrain = (): void => this.#advance()
  readonly #onEnd = (): void => this.#ended()
  readonly #onClose = (): void => this.#abandon()
  // A peer that resets the connection is gone, which `close` tells as well.
  readonly #onError = (error: Error): void =>
    this.#options.log.debug({ err: error }, 'control connection failed')

  constructor(socket: Socket, options: Options) {
    this.#socket = socket
    this.#options = options
    this.#lines = new LineBuffer(options.limits.lineBytes)
    this.#inFlight = new InFlight(options.limits)
    this.#holding = new Holding(socket, this.#lines, options.share)
  }

  open(): void {
    this.#socket.on('data', this.#onData).on('drain', this.#onDrain).on('end', this.#onEnd)
    this.#socket.on('close', this.#onClose).on('error', this.#onError)
    this.#socket.resume()
  }

  // Takes lines only while the peer reads its answers, so that what it costs stays with it.
  #advance(): void {
    if (this.#isWaiting) return
    try {
      for (let left = linesAtOnce; this.#state === 'open' && !this.#socket.writableNeedDrain; left--) {
        if (left === 0) {
          this.#goOnLater()
          break
        }
        const line = this.#lines.next()
        if (line === null) break
        this.#receive(line)
      }
      if (this.#state === 'open') this.#expectRoom()
    } catch (error) {
      this.#write(errorLine(noId, SallyportError.from(error)))
      this.#end()
    }
    if (this.#state !== 'open' && this.#state !== 'attaching') return
    if (this.#state === 'attaching' || this.#isWaiting || this.#socket.writableNeedDrain) this.#socket.pause()
    else if (this.#hasEnded) this.#finish()
    else this.#socket.resume()
  }

  #ended(): void {
    this.#hasEnded = true
    const mayRead = this.#state === 'open' && (this.#isWaiting || this.#socket.writableNeedDrain)
    if (!mayRead) return this.#finish()
    // One that does not read its answers either is not waited for.
    this.#socket.setTimeout(this.#options.limits.lingerMs, () => this.#socket.destroy())
  }

  #goOnLater(): void {
    this.#isWaiting = true
    setImmediate(() => {
      this.#isWaiting = false
      this.#advance()
    })
  }

  /** A line that there is no room for is refused by its id, and its rest not kept; without one, its connection ends. */
  #expectRoom(): void {
    if (this.#lines.heldBytes === 0 || this.#holding.hasRoom) return
    const id = idIn(this.#lines.drop())
    if (id === null) throw noRoom()
    this.#write(errorLine(id, noRoom()))
  }

  #receive(line: Buffer): void {
    const message = parseRequest(line)
    switch (message.kind) {
      case 'blank':
      case 'notification': // JSON-RPC gives it no answer, and none of our methods is worth doing unanswered
        return
      case 'fault':
        this.#write(errorLine(message.id, message.error))
        return
      case 'request':
        void this.#serve(message, line.length) // never rejects
    }
  }

  async #serve(request: Request, bytes: number): Promise<void> {
    const { id, method } = request
    const refusal = this.#refusal(request) ?? this.#holding.begin(bytes)
    if (refusal !== null) {
      this.#write(errorLine(id, refusal))
      return
    }
    const cancelled = this.#inFlight.begin(request)
    const tasks: ((stream: Notifier) => Promise<void>)[] = []
    const call: Call = {
      principal: this.#options.principal,
      signal: AbortSignal.any([cancelled.signal, this.#gone.signal]),
      text: (member) => request.text(member),
      cancel: (requestId) => this.#inFlight.cancel(requestId),
      afterReply: (task) => {
        this.#beginStream()
        tasks.push(task)
      },
    }
    try {
      if (method === 'session/attach') {
        await this.#attach(request, call)
      } else {
        this.#write(resultLine(id, await this.#options.service.call(method, request.params, call)))
        for (const task of tasks) void this.#stream(method, task) // never rejects
      }
    } catch (error) {
      this.#streams -= tasks.length // which nobody follows
      this.#write(errorLine(id, this.#explain(method, error)))
      if (this.#state === 'attaching') this.#end()
    } finally {
      this.#inFlight.end(request)
      this.#holding.end(bytes)
      if (this.#state === 'ending') this.#endWhenAnswered()
    }
  }

  #refusal(request: Request): SallyportError | null {
    const refusal = this.#inFlight.refusal(request)
    if (refusal !== null) return refusal
    if (request.method === 'session/attach' && (this.#inFlight.size > 0 || this.#streams > 0))
      return new SallyportError(
        'ERR_BUSY',
        'session/attach takes the whole connection, and this one is in use; open one for it',
      )
    return null
  }

  // Each is woken by whatever happens, which everybody pays for.
  #beginStream(): void {
    const { streams } = this.#options.limits
    if (this.#streams >= streams)
      throw new SallyportError('ERR_BUSY', `${streams} streams are followed on this connection; open another`)
    this.#streams += 1
  }

  // The bytes behind the request belong to the session, so nothing is read as control protocol from here on:
  // a refused attach ends the connection, since MCP messages could otherwise pass as control calls.
  async #attach(request: Request, call: Call): Promise<void> {
    this.#state = 'attaching'
    const session = await this.#options.service.attach(request.params, call)
    if (this.#gone.signal.aborted) return session.abandon()
    this.#state = 'left'
    this.#socket.off('data', this.#onData).off('drain', this.#onDrain).off('end', this.#onEnd)
    this.#socket.off('close', this.#onClose).off('error', this.#onError)
    this.#socket.write(resultLine(request.id, session.result))
    this.#socket.resume() // flows on the next turn, to whoever listens by then; a pause in between wins
    session.take(this.#socket, this.#lines.rest(), this.#options.share)
    if (this.#hasEnded) this.#socket.setTimeout(0).emit('end') // which came before whoever takes it listened
  }

  // Whoever follows waits for no answer, so the reason is said of the connection.
  async #stream(method: string, task: (stream: Notifier) => Promise<void>): Promise<void> {
    try {
      await task({
        signal: this.#gone.signal,
        notify: (name, params) => this.#pass(notificationLine(name, params)),
        pass: (lines) => this.#pass(lines),
      })
    } catch (error) {
      if (!this.#gone.signal.aborted) this.#write(errorLine(noId, this.#explain(method, error)))
      this.#end()
    } finally {
      this.#streams -= 1
    }
  }

  async #pass(lines: string | Buffer): Promise<void> {
    this.#gone.signal.throwIfAborted()
    if (this.#write(lines)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#socket.once('drain', resolve).once('close', resolve)
    await promise
    this.#socket.off('drain', resolve).off('close', resolve)
    this.#gone.signal.throwIfAborted()
  }

  /** False once the peer should read before more is written. */
  #write(lines: string | Buffer): boolean {
    if (!this.#socket.writable) return false
    const isDrained = this.#socket.write(lines)
    if (this.#socket.writableLength > this.#options.limits.unreadBytes || !this.#holding.hasRoom) {
      this.#options.log.warn(
        { principal: this.#options.principal.id },
        'host reads too slowly, connection cut',
      )
      this.#socket.destroy()
    }
    return isDrained
  }

  #explain(method: string, thrown: unknown): SallyportError {
    if (thrown instanceof SallyportError) return thrown
    this.#options.log.error({ err: thrown, method }, 'control method failed')
    if (thrown instanceof ReplacedError)
      return new SallyportError('ERR_INTERNAL', `${method}: ${thrown.message}`)
    if (isShortage(thrown))
      return new SallyportError('ERR_SHORTAGE', `${method} failed, since the machine is short; ${enough}`)
    return new SallyportError('ERR_INTERNAL', `${method} failed inside the daemon; its log has the cause`)
  }

  // The peer will send no more. A host that closed looks the same as one that only finished writing, so calls are
  // cancelled, and whatever is answered at once still goes out.
  #finish(): void {
    if (this.#state === 'open' && this.#lines.rest().length > 0)
      this.#write(
        errorLine(noId, new SallyportError('ERR_PARSE', 'the connection ended in the middle of a line')),
      )
    this.#end()
  }

  #end(): void {
    if (this.#state === 'left' || this.#state === 'ending') return
    this.#state = 'ending'
    this.#gone.abort(new SallyportError('ERR_CALL_CANCELLED', 'the caller closed its connection'))
    this.#socket.resume() // what still comes is read and dropped, or the close would never be seen
    this.#socket.off('data', this.#onData)
    this.#socket.setTimeout(this.#options.limits.lingerMs, () => this.#socket.destroy())
    this.#endWhenAnswered()
  }

  #endWhenAnswered(): void {
    if (this.#inFlight.size === 0) this.#socket.end()
  }

  #abandon(): void {
    this.#gone.abort(new SallyportError('ERR_CALL_CANCELLED', 'the caller closed its connection'))
    this.#state = 'left'
  }
}
