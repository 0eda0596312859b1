// Which blocks of the code under src ran since somebody last asked, as V8 counts them.
import { Session, type Profiler } from 'node:inspector'

const ours = new URL('../../src/', import.meta.url).href

/** Counts from now on, for as long as the process lives. */
export class Coverage {
  readonly #session = new Session()
  readonly #seen = new Set<string>()

  constructor() {
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** How many blocks ever ran. */
  get size(): number {
    return this.#seen.size
  }

  /** True where a block ran that never did before; `peek` leaves it to be found again. */
  hasNew(peek = false): boolean {
    let isNew = false
    for (const { url, scriptId, functions } of this.#take()) {
      if (!url.startsWith(ours)) continue
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) {
          const block = `${scriptId}:${startOffset}-${endOffset}`
          if (count === 0 || this.#seen.has(block)) continue
          isNew = true
          if (!peek) this.#seen.add(block)
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
