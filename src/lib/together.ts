// One step of many calls at once: what it takes of the processor's caches is there for all of them but the first.
//
// A governed call goes through more machine code than the first cache holds. Taken whole, one call after the other, each
// fetches all of it anew; taken step by step, 64 calls share most of it.

/** Takes a step for all that came in one turn of the event loop, in their order, once the turn's own work is done. */
export class Together {
  #waiting: (() => void)[] = []
  readonly #failed: ((thrown: unknown) => void) | null

  /** `failed` is told of each step that throws; without it `now` fails as the first of them did. */
  constructor(failed: ((thrown: unknown) => void) | null = null) {
    this.#failed = failed
  }

  /** Where `step` throws, those of its turn are taken all the same. */
  add(step: () => void): void {
    const waiting = this.#waiting
    const place = waiting.length
    waiting[place] = step // `push` would be a call
    if (place === 0) queueMicrotask(() => this.now())
  }

  /** Takes the step for all that wait for it, before whatever needs to know what came of it. */
  now(): void {
    const waiting = this.#waiting
    this.#waiting = []
    let failed: { readonly thrown: unknown } | null = null
    for (const step of waiting) {
      try {
        step()
      } catch (thrown) {
        if (this.#failed === null) failed ??= { thrown }
        else this.#failed(thrown)
      }
    }
    if (failed !== null) throw failed.thrown
  }
}
