// What happened lately, numbered: subscribers read it at their own pace, and are told when they were too slow.
import { clip } from '../lib/clip.ts'
import { onePiece } from '../lib/one-piece.ts'
import type { Caller, Emit, Happening } from '../supervisor/ports.ts'
import type { SallyportEvent } from '../rpc/protocol.ts'

interface Entry {
  readonly event: SallyportEvent
  /** Uid whose event it is; null is everybody's */
  readonly principal: string | null
}

const defaultCapacity = 4096

/** A bounded ring of events. Numbers start at 1 in each life of a daemon. */
export class EventLog {
  readonly #capacity: number
  readonly #entries: Entry[] = []
  #seq = 0
  /** Followers that have seen all there is */
  readonly #waiting = new Set<() => void>()
  #isWaking = false

  constructor(capacity = defaultCapacity) {
    this.#capacity = capacity
  }

  /** Number of the latest event, 0 before the first. */
  get seq(): number {
    return this.#seq
  }

  /** Numbers the event, keeps it, and wakes who waits once what goes on has gone on; never blocks and never throws. */
  readonly emit: Emit = ({ principal, detail: said, ...happening }: Happening) => {
    this.#seq += 1
    const detail = clipped(said)
    this.#entries.push({
      event: { seq: this.#seq, at: new Date().toISOString(), ...happening, detail },
      principal,
    })
    if (this.#entries.length > this.#capacity) this.#entries.shift()
    this.#wake()
  }

  /** As `pages`, one by one. */
  async *follow(caller: Caller, since: number, signal: AbortSignal): AsyncGenerator<SallyportEvent> {
    for await (const events of this.pages(caller, since, 1, signal)) yield* events
  }

  /**
   * Events after `since` that the caller may see, then others as they come, until the signal; each time those that there are
   * of so many numbers. Where the ring has moved on, one `events/lost` says how many numbers are missing, which may include
   * events of others.
   */
  async *pages(
    caller: Caller,
    since: number,
    most: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly SallyportEvent[]> {
    let wake = (): void => undefined
    const onAbort = (): void => wake()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      for (let last = since; !signal.aborted;) {
        const first = this.#seq - this.#entries.length + 1
        if (last + 1 < first) {
          yield [lost(first - 1, first - 1 - last)]
          last = first - 1
        }
        const from = last + 1 - first
        const entries = this.#entries.slice(from, from + most)
        if (entries.length === 0) {
          // Raced with the signal's promise, each wait would leave something at that for as long as it is followed.
          const news = Promise.withResolvers<void>()
          wake = news.resolve
          this.#waiting.add(wake)
          await news.promise
          continue
        }
        last += entries.length
        const visible = entries.filter((entry) => maySee(caller, entry))
        if (visible.length > 0) yield visible.map(({ event }) => event)
      }
    } finally {
      this.#waiting.delete(wake)
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** All at once, and once for all that is told in this turn of the event loop. */
  #wake(): void {
    if (this.#isWaking || this.#waiting.size === 0) return
    this.#isWaking = true
    setImmediate(() => {
      this.#isWaking = false
      for (const wake of this.#waiting) wake()
      this.#waiting.clear()
    })
  }
}

/**
 * The ring outlasts what it tells of: a host that makes events must not choose how much of the daemon's memory they take. What
 * was cut out of a line would keep all of it.
 */
const clipped = (detail: Happening['detail']): Happening['detail'] =>
  Object.fromEntries(
    Object.entries(detail).map(([key, value]) => [
      key,
      typeof value === 'string' ? onePiece(clip(value).toWellFormed()) : value,
    ]),
  )

function maySee({ principal, role }: Caller, entry: Entry): boolean {
  return role === 'operator' || entry.principal === null || entry.principal === principal.id
}

function lost(seq: number, count: number): SallyportEvent {
  return {
    seq,
    at: new Date().toISOString(),
    type: 'events/lost',
    server: null,
    instance: null,
    detail: { count },
  }
}
