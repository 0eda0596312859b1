// What the connections of one uid may have the daemon keep together, so that no host can fill its memory.
import type { Room } from '../schema/room.ts'

/** Bounds of what is kept for one uid. */
export interface AllowanceLimits {
  /** What each connection may hold in any case, bytes */
  readonly ownBytes: number
  /** What the connections of one uid may hold together beyond that, bytes */
  readonly sharedBytes: number
}

/** Of one uid, for as long as it has connections. */
export class Allowance {
  readonly #limits: AllowanceLimits
  /** What each of them holds beyond its own, bytes */
  readonly #beyond = new Set<() => number>()

  constructor(limits: AllowanceLimits) {
    this.#limits = limits
  }

  /** Connections that have a share of it. */
  get connections(): number {
    return this.#beyond.size
  }

  /** The share of one more connection, until it is disposed of. */
  open(): Share {
    const { ownBytes, sharedBytes } = this.#limits
    let held = (): number => 0
    let most = sharedBytes
    const beyond = (): number => Math.max(0, held() - ownBytes)
    this.#beyond.add(beyond)
    return {
      weigh: (by, lineBytes = 0) => {
        held = by
        most = Math.max(sharedBytes, lineBytes)
      },
      hasRoom: (more = 0) => {
        if (!this.#beyond.has(beyond)) return false
        const all = held() + more
        return all <= ownBytes || this.#together() - beyond() + all - ownBytes <= most
      },
      [Symbol.dispose]: () => void this.#beyond.delete(beyond),
    }
  }

  // Counted when it is asked for: what was read, or answered, since then is nobody's to tell.
  #together(): number {
    let bytes = 0
    for (const beyond of this.#beyond) bytes += beyond()
    return bytes
  }
}

/** What one connection holds of its uid's allowance; there is room for nothing once it is disposed of. */
export interface Share extends Room, Disposable {}
