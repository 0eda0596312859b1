// What is open between one host and one server: who waits for which answer.
import { BriefMap } from '../../lib/brief-map.ts'
import { nowMs } from '../../lib/clock.ts'
import type { Route } from '../../schema/gate.ts'
import type { MessageId } from '../message/message-id.ts'
import { type Declared, nothingDeclared } from '../questions/declared.ts'
import type { Patience } from './patience.ts'

/** A request of the host's that the server has. */
export interface HostRequest {
  readonly id: MessageId
  readonly method: string
  readonly route: Route
  /** The message, kept only where it may have to be sent again */
  readonly line: string | null
  /** What the host says in it that it can be asked for, in the later era and where the message is not kept */
  readonly declares: Declared | null
  /** How often it was sent again */
  readonly round: number
  /** The id that the server knows it by: the host's, or ours where it was sent again */
  readonly wireId: MessageId
}

/** The request as it is open while a process of its own has it: no answer of the session's process is to this. */
export const openElsewhere = (request: HostRequest): HostRequest => {
  const { raw, key } = request.wireId
  return { ...request, wireId: { raw, key: `own ${key}` } }
}

/** True for one of those: the session's process never had it. */
export const isElsewhere = ({ wireId }: HostRequest): boolean => wireId.key.startsWith('own ')

/** A request of the server's that the host has. */
export interface ServerRequest {
  readonly id: MessageId
  readonly route: Route
  /** Calls off what is done where no answer comes in time */
  readonly inTime: (() => void) | null
  /** What a person is asked, to hold the answer against; null where nobody is, or it is too long */
  readonly question: string | null
}

/** Requests in flight, in one direction, beyond which more are refused */
const maxInFlight = 4096
/** Requests that nobody waits for any more and that are remembered, since their answer may be on its way */
const maxGivenUp = 1024

/** A request that was sent and is not waited for: an answer to one that the host `cancelled` still passes. */
interface GivenUp {
  readonly request: HostRequest
  readonly why: 'cancelled' | 'late'
}

/** How the host introduced itself, word for word, for processes that are spoken to in its name. */
export interface Introduced {
  /** Its params of `initialize`: JSON as it wrote it */
  readonly params: string
  /** Its `notifications/initialized`: the whole message as it wrote it, null until then */
  initialized: string | null
}

/** Bounded: what exceeds a bound is refused by the lanes. */
export class Conversation {
  /** Version that the handshake settled on; null before it, and in the era that has none */
  protocolVersion: string | null = null
  /**
   * True once the host said `initialize`, until the server refuses: the era of handshakes. How a session is spoken in, and never
   * whether what is said in it is judged: which of the two it is, a server decides by its answer.
   */
  isLegacy = false
  /** Null before `initialize`, and in the era that has none */
  introduced: Introduced | null = null
  /** What the host can be asked for outside of an answer: as its handshake says, or in the later era its last subscription */
  declared: Declared = nothingDeclared
  readonly hostRequests = new BriefMap<HostRequest>()
  /** The waits for requests of the host's that were not sent yet, by the requests' keys */
  readonly held = new BriefMap<Patience>()
  readonly serverRequests = new Map<string, ServerRequest>()
  readonly #givenUp = new Map<string, GivenUp>()
  /** Host's key -> ours, for requests that were sent again */
  readonly #resent = new Map<string, string>()
  readonly #limit: number
  #hasAgreed = false
  /** Why the clock stands: questions of the server's that the host has, and streams that are not read since it does not */
  #stands = 0
  #stoodAt = 0
  #stoodMs = 0

  constructor(limit = maxInFlight) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.hostRequests.size + this.held.size >= this.#limit
  }

  get isServerFull(): boolean {
    return this.serverRequests.size >= maxInFlight
  }

  /** The host says `initialize`, with these params. */
  introduce(params: string, declared: Declared): void {
    this.isLegacy = true
    this.declared = declared
    this.introduced = { params, initialized: null }
  }

  /** The server agrees to a version of the era of handshakes, null where it names none. */
  agreed(version: string | null): void {
    this.isLegacy = true
    this.#hasAgreed = true
    this.protocolVersion = version
  }

  /** It does not, or nobody can read to what: without another handshake, before or on its way, the session is of the later era. */
  notAgreed(): void {
    if (this.#hasAgreed || this.hostRequests.values().some(({ route }) => route === 'handshake')) return
    this.isLegacy = false
    this.declared = nothingDeclared
    this.introduced = null
  }

  /** True when an answer may come under this id: another request must not be mistaken for the one that has it. */
  isOpen({ key }: MessageId): boolean {
    return (
      this.hostRequests.has(key) ||
      this.held.has(key) ||
      (this.#resent.size > 0 && this.#resent.has(key)) ||
      (this.#givenUp.size > 0 && this.#givenUp.has(key))
    )
  }

  /** True for a request that was ended in the host's stead, and whose answer is not there yet. */
  isLate(key: string): boolean {
    return this.#givenUp.get(key)?.why === 'late'
  }

  /** True while a question of the server's is with the host, or the host does not read. */
  get isStanding(): boolean {
    return this.#stands > 0
  }

  /** True while a question of the server's is with the host. */
  get isAsking(): boolean {
    return [...this.serverRequests.values()].some(isQuestion)
  }

  /** The clock stands until `go` was said as often as this. */
  stand(): void {
    if (this.#stands++ === 0) this.#stoodAt = nowMs()
  }

  go(): void {
    if (--this.#stands === 0) this.#stoodMs += nowMs() - this.#stoodAt
  }

  /** Bytes that are kept of how the host introduced itself. */
  get introducedBytes(): number {
    return (this.introduced?.params.length ?? 0) + (this.introduced?.initialized?.length ?? 0)
  }

  /** Milliseconds in which the server could work on its answers, and say them; none pass while it waits for the host. */
  now(at = nowMs()): number {
    return (this.isStanding ? this.#stoodAt : at) - this.#stoodMs
  }

  open(request: HostRequest): void {
    const { key } = request.wireId
    this.hostRequests.set(key, request)
    if (request.declares !== null && request.route === 'listen') this.declared = request.declares
    if (key !== request.id.key) this.#resent.set(request.id.key, key)
  }

  /** The request that an answer belongs to, once; `late` when it came too late, null when nobody asked. */
  settle(key: string): HostRequest | 'late' | null {
    const request = this.hostRequests.take(key)
    if (request !== undefined) {
      if (this.#resent.size > 0) this.#resent.delete(request.id.key)
      return request
    }
    const givenUp = this.#forget(key)
    if (givenUp === undefined) return null
    return givenUp.why === 'cancelled' ? givenUp.request : 'late'
  }

  /** The host no longer waits; an answer that is on its way still passes. Returns what was cancelled, or null. */
  cancel(id: MessageId): HostRequest | null {
    return this.#giveUp(this.#resent.get(id.key) ?? id.key, 'cancelled')
  }

  /** The host was told why it has no answer to wait for; one that comes goes nowhere. Returns what is over, or null. */
  expire(key: string): HostRequest | null {
    return this.#giveUp(key, 'late')
  }

  #giveUp(key: string, why: GivenUp['why']): HostRequest | null {
    const request = this.hostRequests.take(key)
    if (request === undefined) return null
    this.#givenUp.set(key, { request: { ...request, line: null }, why }) // it is not sent again
    const [oldest] = this.#givenUp.keys()
    if (this.#givenUp.size > maxGivenUp && oldest !== undefined) this.#forget(oldest)
    return request
  }

  /** What comes under that key is an answer to nothing from now on; the host may use the id again. */
  #forget(key: string): GivenUp | undefined {
    const givenUp = this.#givenUp.get(key)
    if (givenUp === undefined) return undefined
    this.#givenUp.delete(key)
    this.#resent.delete(givenUp.request.id.key)
    return givenUp
  }

  openServer(request: ServerRequest): void {
    this.serverRequests.set(request.id.key, request)
    if (isQuestion(request)) this.stand()
  }

  /** Requests of one kind that the host has from the server. */
  waitingOnHost(route: Route): number {
    let count = 0
    for (const request of this.serverRequests.values()) if (request.route === route) count++
    return count
  }

  settleServer(key: string): ServerRequest | null {
    const request = this.serverRequests.get(key)
    if (request === undefined) return null
    this.serverRequests.delete(key)
    request.inTime?.()
    if (isQuestion(request)) this.go()
    return request
  }

  /**
   * The server takes a request of its own back, or in the later era ends one of the host's: true. A subscription, which may have no
   * other end, is in flight no longer: that is returned. Null where there is none such.
   */
  serverEnds(id: MessageId): HostRequest | true | null {
    if (this.settleServer(id.key) !== null) return true
    if (this.isLegacy) return null
    const request = this.hostRequests.get(id.key)
    if (request?.id.key !== id.key) return null
    return request.route === 'listen' ? this.cancel(id) : true
  }

  /** The server's process is gone. Returns everything that the host waits for: from here on it waits for nothing, and all ids are free. */
  giveUp(): readonly HostRequest[] {
    const open = this.hostRequests.values()
    this.hostRequests.clear()
    this.#givenUp.clear()
    this.#resent.clear()
    return open
  }

  /** Forgets everything: the server is gone. */
  clear(): void {
    for (const key of this.serverRequests.keys()) this.settleServer(key)
    this.hostRequests.clear()
    this.held.clear()
    this.#resent.clear()
    this.#givenUp.clear()
  }
}

/** A person, or a model, may have to be asked. */
const isQuestion = ({ route }: ServerRequest): boolean => route === 'elicitation' || route === 'sampling'
