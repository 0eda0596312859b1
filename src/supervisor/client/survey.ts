// Whether what a server lists is known at present: asked once, asked again when it changed, and waited for by every call.
import { type Question, untilQuiet } from './quiet.ts'

/** Least time between two questions that no call waits for, ms */
const pauseMs = 5000

/** Asks when somebody needs to know. A question that failed is asked again by the next who does. */
export class Survey {
  readonly #question: Question
  #isKnown = false
  #isStale = false
  #asking: Promise<void> | null = null
  #askedAt = -pauseMs
  #later: NodeJS.Timeout | null = null

  constructor({ server, ask }: Omit<Question, 'isStale'>) {
    const again = (): Promise<unknown> => {
      this.#isStale = false
      this.#askedAt = performance.now()
      return ask()
    }
    this.#question = { server, ask: again, isStale: () => this.#isStale }
  }

  get isAsking(): boolean {
    return this.#asking !== null
  }

  /** Null when it is known; otherwise resolves when it is, and rejects when it can't be. */
  known(): Promise<void> | null {
    if (this.#isKnown) return null
    this.#asking ??= this.#run().finally(() => (this.#asking = null))
    return this.#asking
  }

  /** Asks ahead of the first call. */
  begin(): void {
    this.known()?.catch(() => undefined) // whoever needs to know asks again, and is told
  }

  /** The server says that something has changed: it is asked soon enough, and not too often, though nobody calls. */
  changed(): void {
    this.#isKnown = false
    this.#isStale = true
    if (this.#later !== null) return
    const restMs = Math.max(0, this.#askedAt + pauseMs - performance.now())
    if (restMs === 0) return this.begin()
    this.#later = setTimeout(() => {
      this.#later = null
      this.begin()
    }, restMs).unref()
  }

  /** Asks nothing more by itself. */
  end(): void {
    if (this.#later !== null) clearTimeout(this.#later)
  }

  async #run(): Promise<void> {
    await untilQuiet(this.#question)
    this.#isKnown = !this.#isStale // it may have changed since, in this very turn
  }
}
