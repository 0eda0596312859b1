// What of the code under src ran since somebody last asked, as V8 counts it.
import { Session, type Profiler } from 'node:inspector'

const ours = new URL('../../src/', import.meta.url).href

/** A piece of a function, by offsets in its script */
type Piece = readonly [from: number, to: number]

/** Counts from now on, for as long as the process lives. */
export class Coverage {
  readonly #session = new Session()
  /** What never ran of each function that did */
  readonly #missed = new Map<string, readonly Piece[]>()
  #firsts = 0

  constructor() {
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** How often something ran that never had. */
  get size(): number {
    return this.#firsts
  }

  /**
   * True where something ran that never did before; `peek` leaves it to be found again. Where a block ends depends on what else
   * ran since the last question, since V8 tells of two as one where they ran as often: what never ran does not.
   */
  hasNew(peek = false): boolean {
    let isNew = false
    for (const { url, scriptId, functions } of this.#take()) {
      if (!url.startsWith(ours)) continue
      for (const { ranges } of functions) {
        const [whole] = ranges
        if (whole === undefined || whole.count === 0) continue
        const name = `${scriptId}:${whole.startOffset}-${whole.endOffset}`
        const idle = ranges
          .filter(({ count }) => count === 0)
          .map(({ startOffset, endOffset }): Piece => [startOffset, endOffset])
        const before = this.#missed.get(name)
        const left = before === undefined ? idle : common(before, idle)
        if (before !== undefined && lengthOf(left) === lengthOf(before)) continue
        isNew = true
        if (peek) continue
        this.#missed.set(name, left)
        this.#firsts++
      }
    }
    return isNew
  }

  // On one's own thread the inspector answers before `post` returns.
  #take(): readonly Profiler.ScriptCoverage[] {
    let taken: readonly Profiler.ScriptCoverage[] = []
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error
      taken = result
    })
    return taken
  }

  #post(method: string, params = {}): void {
    this.#session.post(method, params, (error) => {
      if (error !== null) throw error
    })
  }
}

/** What lies in pieces of both lists. */
const common = (one: readonly Piece[], other: readonly Piece[]): readonly Piece[] =>
  one.flatMap(([from, to]) =>
    other
      .map(([start, end]): Piece => [Math.max(from, start), Math.min(to, end)])
      .filter(([start, end]) => start < end),
  )

const lengthOf = (pieces: readonly Piece[]): number => pieces.reduce((sum, [from, to]) => sum + to - from, 0)
