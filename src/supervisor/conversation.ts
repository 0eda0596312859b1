// What is open between one host and one server: who waits for which answer.
import { BriefMap } from '../lib/brief-map.ts'
import type { Route } from '../schema/gate.ts'
import type { MessageId } from './message-id.ts'
import type { Patience } from './patience.ts'

/** A request of the host's that the server has. */
export interface HostRequest {
  readonly id: MessageId
  readonly method: string
  readonly route: Route
  /** The message, kept only where it may have to be sent again */
  readonly line: string | null
  /** How often it was sent again */
  readonly round: number
  /** The id that the server knows it by: the host's, or ours where it was sent again */
  readonly wireId: MessageId
}

/** A request of the server's that the host has. */
export interface ServerRequest {
  readonly id: MessageId
  readonly route: Route
  readonly timer: NodeJS.Timeout | null
}

/** Requests in flight, in one direction, beyond which more are refused */
const maxInFlight = 4096
/** Cancelled requests that are remembered, since their answer may be on its way */
const maxCancelled = 1024

/** Bounded: what exceeds a bound is refused by the lanes. */
export class Conversation {
  /** Version that the handshake settled on; null before it, and in the era that has none */
  protocolVersion: string | null = null
  /** True once the host said `initialize`: the era of handshakes */
  isLegacy = false
  readonly hostRequests = new BriefMap<HostRequest>()
  /** The waits for requests of the host's that were not sent yet, by the requests' keys */
  readonly held = new BriefMap<Patience>()
  readonly serverRequests = new Map<string, ServerRequest>()
  readonly #cancelled = new Map<string, HostRequest>()
  /** Host's key -> ours, for requests that were sent again */
  readonly #resent = new Map<string, string>()

  get isFull(): boolean {
    return this.hostRequests.size + this.held.size >= maxInFlight
  }

  get isServerFull(): boolean {
    return this.serverRequests.size >= maxInFlight
  }

  /** True when the host waits for an answer under this id. */
  isOpen(id: MessageId): boolean {
    return this.hostRequests.has(id.key) || this.held.has(id.key) || this.#resent.has(id.key)
  }

  open(request: HostRequest): void {
    const { key } = request.wireId
    this.hostRequests.set(key, request)
    if (key !== request.id.key) this.#resent.set(request.id.key, key)
    if (this.#cancelled.size > 0) this.#cancelled.delete(key)
  }

  /** The request that an answer belongs to, once; null when nobody asked. */
  settle(key: string): HostRequest | null {
    const request = this.hostRequests.get(key)
    if (request !== undefined) {
      this.hostRequests.delete(key)
      if (this.#resent.size > 0) this.#resent.delete(request.id.key)
      return request
    }
    const late = this.#cancelled.get(key)
    if (late === undefined) return null
    this.#cancelled.delete(key)
    return late
  }

  /** The host no longer waits; an answer that is on its way still passes. Returns what was cancelled, or null. */
  cancel(id: MessageId): HostRequest | null {
    const key = this.#resent.get(id.key) ?? id.key
    const request = this.hostRequests.get(key)
    if (request === undefined) return null
    this.hostRequests.delete(key)
    this.#resent.delete(id.key)
    this.#cancelled.set(key, request)
    const [oldest] = this.#cancelled.keys()
    if (this.#cancelled.size > maxCancelled && oldest !== undefined) this.#cancelled.delete(oldest)
    return request
  }

  /** Requests of one kind that the host has from the server. */
  waitingOnHost(route: Route): number {
    let count = 0
    for (const request of this.serverRequests.values()) if (request.route === route) count++
    return count
  }

  settleServer(key: string): ServerRequest | null {
    const request = this.serverRequests.get(key) ?? null
    this.serverRequests.delete(key)
    if (request?.timer) clearTimeout(request.timer)
    return request
  }

  /** Everything that the host waits for; from here on it waits for nothing. */
  giveUp(): readonly HostRequest[] {
    const open = this.hostRequests.values()
    this.hostRequests.clear()
    this.#resent.clear()
    return open
  }

  /** Forgets everything: the server is gone. */
  clear(): void {
    for (const key of this.serverRequests.keys()) this.settleServer(key)
    this.hostRequests.clear()
    this.held.clear()
    this.#resent.clear()
    this.#cancelled.clear()
  }
}
