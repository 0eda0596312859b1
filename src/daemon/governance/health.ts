// Whether the disk takes what calls leave: told once when something can't be kept any more, and once when all can be again.
import type { SallyportError } from '../../errors.ts'
import type { Emit } from '../../supervisor/ports.ts'
import { event } from './failure-events.ts'

/** Told of a failure that is still one, and with null when it is over. */
export type Tell = (failure: SallyportError | null) => void

/** Of all that holds calls up: the journal itself, and outcomes whose long evidence finds no room beside it. */
export class Health {
  readonly #emit: Emit
  readonly #failing = new Set<string>()

  constructor(emit: Emit) {
    this.#emit = emit
  }

  /** What one of them tells by. */
  of(what: 'journal' | 'outcomes'): Tell {
    return (failure) => (failure === null ? this.#over(what) : this.#failed(what, failure))
  }

  #failed(what: string, failure: SallyportError): void {
    if (this.#failing.size === 0)
      this.#emit(event('journal/failed', null, { ...failure.toRpc().data, reason: failure.message }))
    this.#failing.add(what)
  }

  #over(what: string): void {
    if (this.#failing.delete(what) && this.#failing.size === 0) this.#emit(event('journal/mended', null, {}))
  }
}
