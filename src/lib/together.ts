// One step of many calls at once: what it takes of the processor's caches is there for all of them but the first.
//
// A governed call goes through more machine code than the first cache holds. Taken whole, one call after the other, each
// fetches all of it anew; taken step by step, 64 calls share most of it.

/** How long steps may take together in one turn where others choose how long one takes, ms. */
export const wholeTurnMs = 20

/** How many steps are taken before the clock is looked at again, which takes a hundredth of what a call does. */
const stepsALook = 4

/** Takes a step for all that came in one turn of the event loop, in their order, once the turn's own work is done. */
export class Together {
  readonly #failed: ((thrown: unknown) => void) | null
  readonly #turnMs: number
  #waiting: Step[] = []
  /** Whose each of them is */
  #whose: unknown[] = []
  /** The next turn takes what an earlier one has left */
  #isLeft = false

  /**
   * `failed` is told of each step that throws; without it `now` fails as the first of them did. Where some have taken `turnMs`, the
   * others wait for the next turn, and whoever does something else has turns between; those of each party then come by turns.
   */
  constructor({ failed = null, turnMs = Infinity }: Partial<Options> = {}) {
    this.#failed = failed
    this.#turnMs = turnMs
  }

  /** Where `step` throws, those of its turn are taken all the same. */
  add(step: Step, whose: unknown = null): void {
    const waiting = this.#waiting
    const place = waiting.length
    waiting[place] = step // `push` would be a call
    this.#whose[place] = whose
    if (place === 0) queueMicrotask(() => this.#isLeft || this.#take(this.#turnMs))
  }

  /** Takes the step for all that wait for it, before whatever needs to know what came of it. */
  now(): void {
    this.#take(Infinity)
  }

  #take(forMs: number): void {
    const [waiting, whose] = [this.#waiting, this.#whose]
    this.#waiting = []
    this.#whose = []
    const endMs = forMs === Infinity ? Infinity : performance.now() + forMs
    let failed: { readonly thrown: unknown } | null = null
    let taken = 0
    for (const step of waiting) {
      if (taken % stepsALook === 0 && taken > 0 && endMs < Infinity && performance.now() >= endMs) break
      taken += 1
      try {
        step()
      } catch (thrown) {
        if (this.#failed === null) failed ??= { thrown }
        else this.#failed(thrown)
      }
    }
    if (taken < waiting.length) this.#leave(waiting.slice(taken), whose.slice(taken))
    if (failed !== null) throw failed.thrown
  }

  /** What the steps of this turn have added comes behind. */
  #leave(left: readonly Step[], whose: readonly unknown[]): void {
    const steps = [...left, ...this.#waiting]
    const places = byTurns([...whose, ...this.#whose])
    this.#waiting = places.flatMap(({ place }) => steps[place] ?? [])
    this.#whose = places.map(({ party }) => party)
    if (!this.#isLeft) setImmediate(() => this.#goOn())
    this.#isLeft = true
  }

  #goOn(): void {
    this.#isLeft = false
    this.#take(this.#turnMs)
  }
}

/** The places of a list of parties in an order in which each party has one, then each that has more another, and so on. */
function byTurns(
  parties: readonly unknown[],
): readonly { readonly place: number; readonly party: unknown }[] {
  const seen = new Map<unknown, number>()
  return parties
    .map((party, place) => {
      const round = seen.get(party) ?? 0
      seen.set(party, round + 1)
      return { place, party, round }
    })
    .toSorted((one, other) => one.round - other.round)
}

type Step = () => void

interface Options {
  readonly failed: ((thrown: unknown) => void) | null
  /** How long the steps of one turn may take together, ms; the clock is looked at behind every fourth */
  readonly turnMs: number
}
