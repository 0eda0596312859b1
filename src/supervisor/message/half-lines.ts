// Lines of servers that have begun and not ended: so much of all together that no number of servers fills our memory.

/** Who keeps such a line. */
export interface HalfLine {
  /** Keeps nothing of it from now on */
  letGo(): void
}

/** What is so short that nobody counts it, bytes */
const shortBytes = 65_536

/** Knows how much of its line each keeps by now. */
export class HalfLines {
  readonly #most: number
  /** In the order in which the lines began */
  readonly #held = new Map<HalfLine, number>()
  #all = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Lets go of those that began first where all are too much: one that comes is there sooner than one that never ends. */
  weigh(line: HalfLine, bytes: number): void {
    const before = this.#held.get(line) ?? 0
    const now = bytes > shortBytes ? bytes : 0
    if (before === now) return
    this.#all += now - before
    if (now === 0) return void this.#held.delete(line)
    this.#held.set(line, now)
    for (const [first, held] of this.#held) {
      if (this.#all <= this.#most || this.#held.size === 1) return
      this.#held.delete(first)
      this.#all -= held
      first.letGo()
    }
  }
}

/** What servers may have us keep together, bytes; one of them has room for its line in any case */
export const halfLineBytes = 134_217_728

/** Those of all servers, since they have one memory. */
export const halfLines = new HalfLines(halfLineBytes)
