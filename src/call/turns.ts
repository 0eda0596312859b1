// How many calls a server works on at once: whoever comes later waits, first come first served, the connections by turns.
import { SallyportError } from '../errors.ts'
import { BriefMap } from '../lib/brief-map.ts'
import { whenLate } from '../lib/deadline.ts'
import { Together, wholeTurnMs } from '../lib/together.ts'
import type { Proposal, Turn, Waiting } from '../schema/governor.ts'
import type { ServerSettings } from '../schema/settings.ts'

type Bounded = Pick<ServerSettings, 'name' | 'instance' | 'maxConcurrent' | 'timeouts'>
type Taker = Pick<Proposal, 'kind' | 'subject' | 'instance' | 'principal' | 'session' | 'peer'>

/** Told one or the other, once. */
export interface TurnAsker {
  /** In the turn in which another call's ends: whoever comes later comes behind */
  readonly given: (turn: Turn) => void
  readonly refused: (error: SallyportError) => void
}

/** Of what is not counted. */
export const noTurn: Turn = { end: () => undefined }

/** Where a server's settings say no other number; each call of `call` is a process with memory of its own */
const usual: Readonly<Record<ServerSettings['instance'], number>> = { session: 256, call: 8, shared: 256 }

/** Calls of one principal that wait for a turn, at whatever server: each takes about 12 KiB of the daemon */
const mostWaiting = 4096

/** Thousands may be refused by one event: others have turns of the event loop between */
const refusing = new Together({ turnMs: wholeTurnMs })

/** How many calls of tools a server works on at once. */
export const mostConcurrent = ({
  instance,
  maxConcurrent,
}: Pick<Bounded, 'instance' | 'maxConcurrent'>): number => maxConcurrent ?? usual[instance]

/** The turns at every server. Whatever lasts, as subscriptions do, is no call of a tool, and takes none. */
export class Turns {
  readonly #lines = new BriefMap<Line>()
  /** How many calls of each principal wait */
  readonly #waiting = new Map<string, number>()

  /** A turn where one is free, which whoever has it ends; else null. */
  take(server: Bounded, taker: Taker): Turn | null {
    if (taker.kind !== 'tool') return noTurn
    return this.#lineOf(server, taker).take()
  }

  /**
   * Waits for one, where none was free in this turn of the event loop. Refuses with ERR_BUSY where its principal has too many
   * calls waiting, or it does not come within `timeouts.call_ms`, or sooner where the wait says so; and with the signal's reason.
   */
  wait(server: Bounded, taker: Taker, waiting: Waiting, asker: TurnAsker): void {
    const { principal } = taker
    const others = this.#waiting.get(principal) ?? 0
    if (others >= mostWaiting) return asker.refused(tooMany(server, taker))
    this.#waiting.set(principal, others + 1)
    waiting.queued?.(true)
    const left = (): void => {
      waiting.queued?.(false)
      const now = (this.#waiting.get(principal) ?? 1) - 1
      if (now === 0) this.#waiting.delete(principal)
      else this.#waiting.set(principal, now)
    }
    this.#lineOf(server, taker).wait(server, taker, waiting, { ...asker, left })
  }

  /** One for each process, or session where nobody says what the process can take; where each call has its own, one for each principal. */
  #lineOf(server: Bounded, { principal, session, instance }: Taker): Line {
    const process = server.maxConcurrent === null ? session : (instance ?? session)
    const key = server.instance === 'call' ? `${principal} ${server.name}` : process
    let line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, (line = new Line(() => this.#lines.delete(key))))
    line.most = mostConcurrent(server)
    return line
  }
}

/** Turns that are taken, and who waits for one: over each connection in the order of coming. */
class Line {
  most = 0
  readonly #empty: () => void
  #taken = 0
  /** By who connected: an object of each connection's own */
  readonly #waiting = new Map<Taker['peer'], Set<() => void>>()
  #isHandingOn = false
  /** When turns have been handed on for long enough in this turn of the event loop; null where none was */
  #endMs: number | null = null

  constructor(empty: () => void) {
    this.#empty = empty
  }

  /** Null where none is free, or others come first. */
  take(): Turn | null {
    return this.#taken < this.most && this.#waiting.size === 0 ? this.#begin() : null
  }

  /** It is the next one's then. */
  end(): void {
    this.#taken -= 1
    this.#handOn()
  }

  wait(
    server: Bounded,
    { peer, subject }: Taker,
    waiting: Waiting,
    asker: TurnAsker & { readonly left: () => void },
  ): void {
    const { signal, limitMs = Infinity } = waiting
    const { callMs } = server.timeouts
    const given = (): void => {
      leave()
      asker.given(this.#begin())
    }
    const leave = (): void => {
      dueNoMore()
      signal.removeEventListener('abort', abort)
      this.#remove(peer, given)
      asker.left()
    }
    const giveUp = (error: SallyportError): void => {
      leave()
      refusing.add(() => asker.refused(error), peer)
    }
    const abort = (): void => giveUp(SallyportError.from(signal.reason))
    const dueNoMore = whenLate(Math.min(callMs, limitMs), () => giveUp(late(server, subject, limitMs)))
    signal.addEventListener('abort', abort, { once: true })
    const line = this.#waiting.get(peer)
    if (line === undefined) this.#waiting.set(peer, new Set([given]))
    else line.add(given)
    if (signal.aborted) abort()
    this.#handOn() // there may be more turns than there were
  }

  #begin(): Turn {
    this.#taken += 1
    return new Place(this)
  }

  /** Whoever is given a turn may end it at once, and so may thousands, one after the other: others have turns of the event loop between. */
  #handOn(): void {
    if (this.#isHandingOn) return
    this.#isHandingOn = true
    let isLeft = false
    try {
      while (this.#taken < this.most && this.#waiting.size > 0) {
        isLeft = this.#isOver()
        if (isLeft) return void setImmediate(() => this.#goOn())
        this.#giveNext()
      }
    } finally {
      this.#isHandingOn = isLeft
    }
    if (this.#taken === 0) this.#empty()
  }

  #goOn(): void {
    this.#isHandingOn = false
    this.#handOn()
  }

  /** Whether this turn of the event loop has been handed on in for long enough, be it that each was given to somebody who ended it by a promise. */
  #isOver(): boolean {
    if (this.#endMs !== null) return performance.now() >= this.#endMs
    this.#endMs = performance.now() + wholeTurnMs
    setImmediate(() => (this.#endMs = null))
    return false
  }

  /** To the first over the connection whose turn it is, which then waits for all others. */
  #giveNext(): void {
    for (const [peer, line] of this.#waiting) {
      this.#waiting.delete(peer)
      this.#waiting.set(peer, line)
      for (const give of line) return give()
    }
  }

  #remove(peer: Taker['peer'], one: () => void): void {
    const line = this.#waiting.get(peer)
    line?.delete(one)
    if (line?.size === 0) this.#waiting.delete(peer)
  }
}

/** One call's. */
class Place implements Turn {
  #line: Line | null

  constructor(line: Line) {
    this.#line = line
  }

  end(): void {
    const line = this.#line
    this.#line = null
    line?.end()
  }
}

const late = (server: Bounded, subject: string, limitMs: number): SallyportError =>
  new SallyportError(
    'ERR_BUSY',
    `${server.name} ${subject} was not called: its turn did not come within ${limitMs < server.timeouts.callMs ? `${limitMs} ms` : `${server.timeouts.callMs} ms (timeouts.call_ms)`}, and max_concurrent is ${mostConcurrent(server)}; call again, or fewer at once`,
    { server: server.name, tool: subject },
  )

const tooMany = ({ name }: Bounded, { principal, subject }: Taker): SallyportError =>
  new SallyportError(
    'ERR_BUSY',
    `${name} ${subject} was not called: ${mostWaiting} calls of uid ${principal} wait for their turn already; call again when some are answered`,
    { server: name, tool: subject },
  )
