// What is told of the sandboxes that wait for calls.

/** The sandboxes that wait for calls of a server, and what became of them since the pool was last given up. */
export interface PoolView {
  /** Most that wait */
  readonly size: number
  readonly waiting: number
  /** What those that wait hold, bytes */
  readonly memory_bytes: number
  /** Calls that had one, and calls that found none */
  readonly drawn: number
  readonly missed: number
  /** Those that ended while they waited */
  readonly lost: number
  /** Why fewer wait than could, or null */
  readonly reason: string | null
}
