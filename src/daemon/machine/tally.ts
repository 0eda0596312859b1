// Connections of one sandbox on their way to the journal: told one by one, and where there are too many counted by the second.
import { TokenBucket } from '../../lib/token-bucket.ts'
import type { EgressEvent } from '../../schema/egress.ts'

/** Told at once, and each second after that */
const burst = 100
const perSecond = 20
/** Different ones that are counted apart in one second */
const maxKinds = 64
const windowMs = 1000

/** Passes on what is within the rate; the rest is added up, and told when the second is over, or at the end. */
export class Tally implements Disposable {
  readonly #tell: (event: EgressEvent) => void
  readonly #held = new Map<string, EgressEvent>()
  readonly #rate = new TokenBucket(burst, perSecond)
  #timer: NodeJS.Timeout | null = null

  constructor(tell: (event: EgressEvent) => void) {
    this.#tell = tell
  }

  add(event: EgressEvent): void {
    if (this.#rate.take()) return this.#tell(event)
    const own = `${event.kind} ${event.verdict} ${event.reason ?? ''} ${event.host}:${event.port ?? ''}`
    const key = this.#held.has(own) || this.#held.size < maxKinds ? own : `${event.kind} *`
    this.#held.set(key, sum(this.#held.get(key), event))
    this.#timer ??= setTimeout(() => this.#flush(), windowMs).unref()
  }

  [Symbol.dispose](): void {
    this.#flush()
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const event of this.#held.values()) this.#tell(event)
    this.#held.clear()
  }
}

const sum = (before: EgressEvent | undefined, event: EgressEvent): EgressEvent => ({
  ...event,
  bytesUp: event.bytesUp + (before?.bytesUp ?? 0),
  bytesDown: event.bytesDown + (before?.bytesDown ?? 0),
  durationMs: Math.max(event.durationMs, before?.durationMs ?? 0),
  swapped: [...new Set([...(before?.swapped ?? []), ...event.swapped])],
  redacted: [...new Set([...(before?.redacted ?? []), ...event.redacted])],
  count: event.count + (before?.count ?? 0),
})
