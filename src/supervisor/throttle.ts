// Tells something the first time, the second, the fourth, …, so that a flood of it costs nothing and is not hidden.

/** Counts kinds of things and says when one is worth telling. */
export class Throttle {
  readonly #counts = new Map<string, number>()

  /** Counts one of `kind`; returns the count when it is a power of two, else null. */
  count(kind: string): number | null {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    return Number.isInteger(Math.log2(count)) ? count : null
  }
}
