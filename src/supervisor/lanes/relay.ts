// Carries bytes between one host and one server: in lines, judged by the lanes, written as they came, with backpressure.
//
//   host ──data──> lines ──> host lane ──pass──> outlet ──> server's stdin     a full pipe pauses its own source,
//   host <── outlet <──pass── server lane <── lines <──data── server's stdout  and nothing else
import type { Duplex, Readable, Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { SallyportError } from '../../errors.ts'
import { bugIn, contained } from '../message/contained.ts'
import { Together } from '../../lib/together.ts'
import { noRoom, type Room } from '../../schema/room.ts'
import { inputOf } from '../dispatch.ts'
import { errorLine } from '../message/answers.ts'
import { Garbage } from '../message/garbage.ts'
import type { MessageId } from '../message/message-id.ts'
import { FullStreams } from './full-streams.ts'
import type { SessionHolding } from './holding.ts'
import { HostLane } from './host-lane.ts'
import { HostReader } from './host-reader.ts'
import { Outlet } from './outlet.ts'
import { ServerLane } from './server-lane.ts'
import { ServerReader } from './server-reader.ts'
import type { Running } from '../ports.ts'
import type { Wire } from './wire.ts'

/** What the relay tells its session. */
export interface RelayEvents {
  /** Something is to be said to a server, and none is connected */
  wanted(): void
  /** The host will say nothing more */
  hostEnded(): void
  /** The server will say nothing more */
  serverEnded(process: Running): void
  /** The session cannot go on */
  broken(error: SallyportError): void
}

/** One host, at most one server at a time. Bytes for a server that is not there yet are held, and the host waits. */
export class Relay {
  readonly #host: Duplex
  readonly #wire: Wire
  readonly #events: RelayEvents
  readonly #reader: HostReader
  readonly #toServer: Outlet
  readonly #toHost: Outlet
  #server: { readonly process: Running; readonly lane: ServerLane } | null = null
  /** What the host's stream was given back, for its next turn */
  #unread: Buffer = Buffer.alloc(0)
  #held: Buffer[] = []
  #admitted: string[] = []
  #heldBytes = 0
  /** What the host's requests are refused with, once nothing more of it is taken */
  #closed: SallyportError | null = null
  /** True while nothing more is taken from the host, until a server takes what is held */
  #isHostWaiting = false
  readonly #full = new FullStreams((source) =>
    source === this.#host ? this.#resumeHost() : this.#resumeServer(source),
  )
  readonly #holding: SessionHolding
  /** Lines that came together are all read before the first is judged */
  readonly #judging = new Together({ failed: (thrown) => this.#events.broken(bugIn(thrown)) })
  readonly #garbage: Garbage

  constructor(host: Duplex, wire: Omit<Wire, 'toHost' | 'toServer'>, events: RelayEvents) {
    this.#host = host
    this.#events = events
    this.#holding = wire.holding
    wire.holding.add(() => this.#keptBytes)
    this.#wire = {
      ...wire,
      toHost: (line) => this.answer(line),
      toServer: (line) => this.#answerServer(line),
    }
    this.#garbage = new Garbage(wire.server.name)
    this.#toServer = new Outlet((bytes) => this.#writeServer(bytes))
    this.#toHost = new Outlet((bytes) => this.#writeHost(bytes))
    this.#reader = new HostReader(new HostLane(this.#wire), {
      server: wire.server,
      holding: wire.holding,
      judging: this.#judging,
      closed: () => this.#closed,
      isFlowing: () => this.#isFlowing,
      toServer: this.#toServer,
    })
  }

  /** Begins to listen to the host, for which there is that room; `head` is what was read of it before. */
  open(head: Buffer, room: Room): void {
    this.#holding.within(room, this.#wire.server.output.lineBytes)
    this.#host.on('data', (chunk: Buffer) => this.#contained(() => this.#fromHost(chunk)))
    const ended = (): void => this.#contained(() => this.#hostEnded())
    for (const end of ['end', 'close', 'error']) this.#host.on(end, ended)
    this.#host.resume() // it came paused: nothing was to be read while the request was judged
    if (head.length > 0) this.#contained(() => this.#fromHost(head))
  }

  /** Connects a server and gives it what was held. While `muted`, only answers of it pass. */
  connect(process: Running, { muted, flush }: { readonly muted: boolean; readonly flush: boolean }): void {
    const lane = new ServerLane(this.#wire, process.redactor)
    lane.isMuted = muted
    this.#server = { process, lane }
    const reader = new ServerReader(lane, process, {
      server: this.#wire.server,
      holding: this.#holding,
      judging: this.#judging,
      garbage: this.#garbage,
      isServed: () => this.#server?.process === process,
      toHost: this.#toHost,
      overfilled: () => this.#overfill(),
      mayRead: () => !this.#full.isWaiting(process.stdout, this.#host),
      broken: (error) => this.#events.broken(error),
    })
    process.stdout.on('data', (chunk: Buffer) => this.#contained(() => reader.read(chunk)))
    process.stdout.on('end', () => this.#ended(process)).on('close', () => this.#ended(process))
    if (flush) this.release()
  }

  /** Lets everything of the connected server pass, and gives it what was held. */
  release(): void {
    if (this.#server !== null) this.#server.lane.isMuted = false
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    this.#isHostWaiting = false
    this.#resumeHost()
    for (const bytes of held) this.#writeServer(bytes)
  }

  /** Says one line to the connected server at once, whatever is held. */
  sayFirst(): void {
    const first = this.#held.shift()
    if (first === undefined) return
    this.#heldBytes -= first.length
    this.#input?.write(first)
  }

  /** Says one line to the connected server, behind whatever has passed in this turn. */
  say(line: string): void {
    this.#toServer.flush()
    this.#answerServer(line)
  }

  /** Says lines of the host's that may pass by now; those of one turn go out together. */
  admit(line: string): void {
    this.#admitted[this.#admitted.length] = line // `push` would be a call
    if (this.#admitted.length > 1) return
    queueMicrotask(() => {
      const text = this.#admitted.join('')
      this.#admitted = []
      if (text !== '') this.#writeServer(Buffer.from(text, 'latin1'))
    })
  }

  /** Lets go of the server, which may still be ending; what it says now goes nowhere. */
  disconnect(): void {
    this.#server?.process.stdout.resume()
    this.#server = null
  }

  /** Lets go of the server with whatever it was still to hear. */
  forget(): void {
    this.#full.forget(this.#input)
    this.disconnect()
    this.#held = []
    this.#heldBytes = 0
    this.#admitted = []
    this.#isHostWaiting = false
    this.#resumeHost()
  }

  get isHolding(): boolean {
    return this.#held.length > 0
  }

  /** Takes nothing more from the host until there is a server that takes what is held. */
  pauseHost(): void {
    this.#isHostWaiting = true
    this.#host.pause()
  }

  /** The connected server hears no more. */
  endInput(): void {
    this.#toServer.flush()
    this.#input?.end()
  }

  /** False once the host has closed both of its ends: of a socket a write of nothing tells that from the end of what it says. */
  async stillReads(): Promise<boolean> {
    if (this.#host.writable && this.#host.writableLength === 0) this.#host.write('')
    await turn()
    return this.#host.writable
  }

  /** Nothing more is taken from the host: what it asks is refused, all else read and dropped, so that its end is clean. */
  close(error: SallyportError): void {
    this.#closed = error
    this.#held = []
    this.#host.resume()
  }

  #contained(work: () => void): void {
    contained(work, (bug) => this.#events.broken(bug))
  }

  /** One that was let go of ends in its own time, and another may be connected by then. */
  #ended(process: Running): void {
    if (this.#server?.process === process) this.#events.serverEnded(process)
  }

  /** Of what is many lines, those that are too many for one turn wait for the next, and longer for a host that does not read. */
  #fromHost(chunk: Buffer): void {
    if (this.#closed !== null && this.#host.writableNeedDrain) return
    this.#unread = this.#reader.read(chunk)
    if (this.#unread.length === 0 || this.#host.readableEnded) return // whose end, told behind it, reads on
    this.#host.pause()
    this.#host.unshift(this.#unread)
    setImmediate(() => this.#resumeHost())
  }

  /** A stream that breaks off drops what it was given back: it was said all the same, and nobody is there to be told too much. */
  #hostEnded(): void {
    if (this.#unread.length > 0 && this.#closed === null) this.#unread = this.#reader.read(this.#unread)
    if (this.#unread.length === 0 || this.#closed !== null) return this.#events.hostEnded()
    setImmediate(() => this.#contained(() => this.#hostEnded()))
  }

  /** True while what the host says goes straight to a server. */
  get #isFlowing(): boolean {
    return this.#server !== null && !this.#server.lane.isMuted
  }

  /** What the host has not ended, what its server has not taken, and what it has not read itself, bytes. */
  get #keptBytes(): number {
    const unsent = this.#reader.held + this.#heldBytes + (this.#input?.writableLength ?? 0)
    const unread = this.#host.destroyed ? 0 : this.#host.writableLength
    const waiting = this.#server?.process.stdout.readableLength ?? 0
    return this.#wire.talk.introducedBytes + unsent + unread + waiting
  }

  get #input(): Writable | undefined {
    return this.#server === null ? undefined : inputOf(this.#server.process)
  }

  #writeServer(bytes: Buffer): void {
    const stdin = this.#input
    if (stdin === undefined || !this.#isFlowing) return this.#hold(bytes)
    if (stdin.writable && !stdin.write(bytes)) this.#full.pause(stdin, this.#host)
  }

  #hold(bytes: Buffer): void {
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    const { lineBytes } = this.#wire.server.output
    if (this.#heldBytes > lineBytes || !this.#holding.fits(this.#heldBytes)) this.pauseHost()
    this.#events.wanted()
  }

  #writeHost(bytes: Buffer): void {
    const stdout = this.#server?.process.stdout
    if (!this.#host.writable || this.#host.write(bytes) || stdout === undefined) return
    // What it has answered in time is not too late because its host reads it later.
    if (this.#full.pause(this.#host, stdout)) this.#wire.talk.stand()
  }

  #resumeServer(stdout: Readable): void {
    this.#wire.talk.go()
    stdout.resume()
  }

  /** Our own words to the host: one that does not listen is not listened to, nor told anything in the end. */
  answer(line: string, answers: MessageId | null = null): void {
    if (!this.#host.writable) return
    const isTooMuch = answers !== null && !this.#holding.hasRoomFor(line.length)
    if (this.#host.write(isTooMuch ? errorLine(answers, noRoom()) : line, 'latin1')) return
    this.#full.pause(this.#host, this.#host)
    if (!this.#holding.fits(this.#host.writableLength)) this.#overfill()
  }

  /** The host leaves more unread than there is room for. */
  #overfill(): void {
    if (this.#closed !== null) return
    this.#closed = noRoom()
    this.#events.broken(this.#closed)
  }

  /** Our own words to the server: one that asks and never reads would fill our memory with answers. */
  #answerServer(line: string): void {
    const stdin = this.#input
    if (stdin === undefined || !stdin.writable) return
    stdin.write(line, 'latin1')
    const { name, output } = this.#wire.server
    if (stdin.writableLength > output.lineBytes + 1_048_576)
      this.#events.broken(new SallyportError('ERR_SERVER_PROTOCOL', `${name} asks and does not read answers`))
  }

  #resumeHost(): void {
    const isFull = [this.#host, this.#input].some((full) => this.#full.isWaiting(this.#host, full))
    if (this.#closed !== null || (!isFull && !this.#isHostWaiting)) this.#host.resume()
  }
}
