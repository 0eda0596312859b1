// What the connections of one uid may have the daemon keep together, so that no host can fill its memory.

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
  #shared = 0
  #connections = 0

  constructor(limits: AllowanceLimits) {
    this.#limits = limits
  }

  /** Connections that have a share of it. */
  get connections(): number {
    return this.#connections
  }

  /** The share of one more connection, until it is disposed of. */
  open(): Share {
    this.#connections += 1
    let beyond = 0
    const take = (held: number): boolean => {
      const wanted = Math.max(0, held - this.#limits.ownBytes)
      const isMore = wanted > beyond
      if (isMore && this.#shared - beyond + wanted > this.#limits.sharedBytes) return false
      this.#shared += wanted - beyond
      beyond = wanted
      return true
    }
    let isOpen = true
    return {
      take: (held) => isOpen && take(held),
      [Symbol.dispose]: () => {
        if (!isOpen) return
        take(0)
        isOpen = false
        this.#connections -= 1
      },
    }
  }
}

/** What one connection holds of its uid's allowance; nothing once it is disposed of. */
export interface Share extends Disposable {
  /** Says how much the connection holds by now, bytes; false, and nothing changes, where that is more than there is room for */
  readonly take: (held: number) => boolean
}
