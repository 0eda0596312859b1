// Tells events, and counts refusals where there are too many to tell one by one.
import { TokenBucket } from '../lib/token-bucket.ts'
import type { EgressEvent } from '../schema/egress.ts'
import type { Attempt } from './notices.ts'
import { tellBurst, tellMs, tellPerSecond, toldApart } from './limits.ts'

/** Passes on what opened and closed as it comes. Refusals beyond the burst are held for a second, and told with their count. */
export class Teller implements Disposable {
  readonly #tell: (event: EgressEvent) => void
  readonly #held = new Map<string, EgressEvent>()
  readonly #rate = new TokenBucket(tellBurst, tellPerSecond)
  #timer: NodeJS.Timeout | null = null

  constructor(tell: (event: EgressEvent) => void) {
    this.#tell = tell
  }

  event(event: EgressEvent): void {
    if (event.kind !== 'refused' || this.#rate.take()) this.#tell(event)
    else this.#hold(event)
  }

  /** Tells what was refused inside the sandbox, where nothing was carried. */
  attempt(connection: string, attempt: Attempt): void {
    const nothing = { address: null, bytesUp: 0, bytesDown: 0, durationMs: 0, swapped: [], redacted: [] }
    this.event({ kind: 'refused', connection, verdict: 'refused', ...nothing, ...attempt })
  }

  /** What is still held is told now. */
  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#flush()
  }

  /** Held by reason and target; where too many differ, by reason alone and under the first of their targets. */
  #hold(event: EgressEvent): void {
    const whole = `${event.reason} ${event.host} ${event.port}`
    const key = this.#held.has(whole) || this.#held.size < toldApart ? whole : `${event.reason}`
    const { count } = this.#held.get(key) ?? { count: 0 }
    this.#held.set(key, { ...(this.#held.get(key) ?? event), count: count + event.count })
    this.#timer ??= setTimeout(() => this.#flush(), tellMs)
  }

  #flush(): void {
    this.#timer = null
    const held = [...this.#held.values()]
    this.#held.clear()
    for (const event of held) this.#tell(event)
  }
}
