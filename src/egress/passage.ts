// One connection at a door, from its first line to its record: what belongs to it, why it ended, what was told of it.
import type { Socket } from 'node:net'
import {
  type EgressEvent,
  type EgressVerdict,
  type InterceptionLog,
  leaseEnded,
  type OpenConnection,
} from '../schema/egress.ts'
import { escaped } from './escape.ts'
import { farewellMs } from './limits.ts'
import { Opening } from './opening.ts'
import type { Partings } from './partings.ts'
import { Refusal } from './refusal.ts'

/** Made once: an error that nobody is to read need not be traced for each connection. */
const over = new Refusal('ended', 'cut')

/** Sockets and waits of a passage end with it; the first reason to end is the one that is told. */
export class Passage implements OpenConnection {
  readonly connection: string
  readonly client: Socket
  /** What the client says first */
  readonly opening: Opening
  /** Aborted with the refusal that ended it */
  readonly signal: AbortSignal
  /** What an interceptor tells of it */
  readonly log: InterceptionLog
  host = ''
  port = 0
  /** Whether the client waits for an HTTP answer, so that a refusal can be told in its own words */
  awaitsAnswer = false
  /** Whether an interceptor owns the client's stream */
  isIntercepted = false
  bytesUp = 0
  bytesDown = 0
  #address: string | null = null
  #noted: string | null = null
  #state: 'judged' | 'opened' | 'ended' = 'judged'
  readonly #tell: (event: EgressEvent) => void
  readonly #partings: Partings
  readonly #abort = new AbortController()
  readonly #startedAt = performance.now()
  readonly #swapped = new Set<string>()
  readonly #redacted = new Set<string>()
  readonly #upstreams = new Set<Socket>()

  constructor(client: Socket, connection: string, tell: (event: EgressEvent) => void, partings: Partings) {
    this.client = client
    this.opening = new Opening(client)
    this.connection = connection
    this.signal = this.#abort.signal
    this.#tell = tell
    this.#partings = partings
    this.log = {
      swapped: (credential) => void this.#swapped.add(credential),
      redacted: (credential) => void this.#redacted.add(credential),
      cut: (reason) => {
        this.#noted ??= reason
        if (reason === leaseEnded) partings.add(client)
      },
    }
  }

  get swapped(): readonly string[] {
    return [...this.#swapped]
  }

  /** What it asks for, in the words of whoever asks until they were judged. */
  asks(host: string, port: number): void {
    this.host = host
    this.port = port
  }

  /** A judged address answered; the first one is told. */
  opened(upstream: Socket, address: string): void {
    this.#upstreams.add(upstream)
    upstream.once('close', () => this.#upstreams.delete(upstream))
    if (this.#state === 'ended') upstream.destroy()
    if (this.#state !== 'judged') return
    this.#state = 'opened'
    this.#address = address
    this.#tell(this.#event('opened', 'connected', null))
  }

  /** Whoever intercepts speaks with the client, and ends it when the host is gone. */
  #partUpstream(reason: string): void {
    this.#noted ??= reason
    for (const upstream of this.#upstreams) upstream.destroy()
    const timer = setTimeout(() => this.cut(reason), farewellMs)
    this.client.once('close', () => clearTimeout(timer))
  }

  /** It is no way out after all: nothing is told of it, and its socket is somebody else's from here. */
  yieldSocket(): Socket {
    this.#state = 'ended'
    this.opening.putBack()
    return this.client
  }

  cut(reason: string): void {
    this.end('cut', reason)
  }

  /** Ends it as well, but its client is told, and not cut off; one that ends with its lease is told already. */
  part(reason: string): void {
    if (this.#noted === leaseEnded) return
    this.#partings.add(this.client)
    if (this.isIntercepted && this.#state === 'opened') this.#partUpstream(reason)
    else this.end('cut', reason, this.#state === 'opened' ? '' : null)
  }

  /** Ends it by what was thrown. `answer` is the last that the client is told; without one it is cut off at once. */
  refuse({ verdict, reason }: Refusal, answer: string | null = null): void {
    this.end(verdict, reason, answer)
  }

  /** Ends it once and for all, by both of its ends unless a verdict says otherwise. */
  end(
    verdict: Exclude<EgressVerdict, 'connected'> = 'ended',
    reason: string | null = null,
    answer: string | null = null,
  ): void {
    if (this.#state === 'ended') return
    const wasOpened = this.#state === 'opened'
    this.#state = 'ended'
    for (const upstream of this.#upstreams) upstream.destroy()
    if (answer === null) this.client.destroy()
    else farewell(this.client, answer)
    this.opening.abandon()
    this.#abort.abort(reason === null ? over : new Refusal(reason, 'cut'))
    this.#tell(this.#event(wasOpened ? 'closed' : 'refused', ...this.#outcome(verdict, reason, wasOpened)))
  }

  /** The word of an interceptor stands before ours where it only came to an end. */
  #outcome(
    verdict: EgressVerdict,
    reason: string | null,
    wasOpened: boolean,
  ): [verdict: EgressVerdict, reason: string | null] {
    if (verdict !== 'ended') return [verdict, reason]
    if (this.#noted !== null) return [wasOpened ? 'cut' : 'refused', this.#noted]
    return wasOpened ? [verdict, reason] : ['failed', reason ?? 'client-left']
  }

  #event(kind: EgressEvent['kind'], verdict: EgressVerdict, reason: string | null): EgressEvent {
    return {
      kind,
      connection: this.connection,
      host: escaped(this.host),
      port: this.port === 0 ? null : this.port,
      address: this.#address,
      verdict,
      reason,
      bytesUp: this.bytesUp,
      bytesDown: this.bytesDown,
      durationMs: Math.round(performance.now() - this.#startedAt),
      swapped: this.swapped,
      redacted: [...this.#redacted],
      count: 1,
    }
  }
}

/** Ends a socket with its last words, and does not wait for them to be read for long. */
function farewell(client: Socket, answer: string): void {
  const timer = setTimeout(() => client.destroy(), farewellMs)
  client.once('close', () => clearTimeout(timer))
  client.once('end', () => client.destroySoon())
  client.end(answer, 'latin1')
  client.resume()
}
