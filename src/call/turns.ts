// How many calls a server works on at once: whoever comes later waits, first come first served, the sessions by turns.
import { SallyportError } from '../errors.ts'
import { BriefMap } from '../lib/brief-map.ts'
import { whenLate } from '../lib/deadline.ts'
import type { Proposal, Turn } from '../schema/governor.ts'
import type { ServerSettings } from '../schema/settings.ts'

type Bounded = Pick<ServerSettings, 'name' | 'instance' | 'maxConcurrent' | 'timeouts'>
type Taker = Pick<Proposal, 'kind' | 'subject' | 'instance' | 'principal' | 'session'>

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

/** How many calls of tools a server works on at once. */
export const mostConcurrent = ({
  instance,
  maxConcurrent,
}: Pick<Bounded, 'instance' | 'maxConcurrent'>): number => maxConcurrent ?? usual[instance]

/** The turns at every server. Whatever lasts, as subscriptions do, is no call of a tool, and takes none. */
export class Turns {
  readonly #lines = new BriefMap<Line>()

  /** A turn where one is free, which whoever has it ends, once; else null. */
  take(server: Bounded, taker: Taker): Turn | null {
    if (taker.kind !== 'tool') return noTurn
    const line = this.#lineOf(server, taker)
    if (line.taken >= mostConcurrent(server)) return null
    line.taken += 1
    return line
  }

  /**
   * Waits for one, where none was free in this turn of the event loop. Refuses with ERR_BUSY where it does not come within
   * `timeouts.call_ms`, and with the signal's reason.
   */
  wait(server: Bounded, taker: Taker, { signal }: { readonly signal: AbortSignal }, asker: TurnAsker): void {
    this.#lineOf(server, taker).wait(server, taker, signal, asker)
  }

  /** One for each process, or session where nobody says what the process can take; where each call has its own, one for each principal. */
  #lineOf({ name, instance, maxConcurrent }: Bounded, { principal, session, ...taker }: Taker): Line {
    const process = maxConcurrent === null ? session : (taker.instance ?? session)
    const key = instance === 'call' ? `${name} ${principal}` : process
    const known = this.#lines.get(key)
    if (known !== undefined) return known
    const made = new Line(() => this.#lines.delete(key))
    this.#lines.set(key, made)
    return made
  }
}

/** Turns that are taken, and who waits for one: of each session in the order of coming. */
class Line implements Turn {
  taken = 0
  readonly #empty: () => void
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(empty: () => void) {
    this.#empty = empty
  }

  /** It is the next one's then. */
  end(): void {
    const next = this.#next()
    if (next !== null) return next()
    this.taken -= 1
    if (this.taken === 0) this.#empty()
  }

  wait(server: Bounded, { session, subject }: Taker, signal: AbortSignal, asker: TurnAsker): void {
    const { callMs } = server.timeouts
    const given = (): void => {
      leave()
      asker.given(this)
    }
    const leave = (): void => {
      dueNoMore()
      signal.removeEventListener('abort', abort)
      this.#remove(session, given)
    }
    const giveUp = (error: SallyportError): void => {
      leave()
      asker.refused(error)
    }
    const abort = (): void => giveUp(SallyportError.from(signal.reason))
    const dueNoMore = whenLate(callMs, () => giveUp(late(server, subject)))
    signal.addEventListener('abort', abort, { once: true })
    const line = this.#waiting.get(session)
    if (line === undefined) this.#waiting.set(session, new Set([given]))
    else line.add(given)
    if (signal.aborted) abort()
  }

  /** The first of the session whose turn it is, which then waits for all others. */
  #next(): (() => void) | null {
    for (const [session, line] of this.#waiting) {
      this.#waiting.delete(session)
      this.#waiting.set(session, line)
      for (const first of line) return first
    }
    return null
  }

  #remove(session: string, one: () => void): void {
    const line = this.#waiting.get(session)
    line?.delete(one)
    if (line?.size === 0) this.#waiting.delete(session)
  }
}

const late = (server: Bounded, subject: string): SallyportError =>
  new SallyportError(
    'ERR_BUSY',
    `${server.name} ${subject} was not called: its turn did not come within ${server.timeouts.callMs} ms (timeouts.call_ms), and max_concurrent is ${mostConcurrent(server)}; call again, or fewer at once`,
    { server: server.name, tool: subject },
  )
