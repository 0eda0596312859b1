// Asks the governor about a held request: about each thing in it that policy governs, one after the other.
import { SallyportError } from '../../errors.ts'
import { isLong, ownTurn } from '../../lib/long-text.ts'
import { Together } from '../../lib/together.ts'
import type { Admission, Asker, Governor } from '../../schema/governor.ts'
import type { Patience } from '../lanes/patience.ts'
import type { Ask, Held } from '../lanes/wire.ts'

type Obstacle = () => Promise<SallyportError | null> | SallyportError | null

/** Of the requests of one turn it is known what is in the way of each before any is asked about. */
const asking = new Together()

/** Hears for itself what the governor says, so that no call waits for a promise that nothing has to be waited for. */
export class Asking implements Asker {
  readonly held: Held
  readonly patience: Patience
  admissions: readonly Admission[] = []
  readonly #governor: Pick<Governor, 'confirm'>
  readonly #ask: (ask: Ask, asking: Asking) => void
  readonly #decided: (asking: Asking, refusal: SallyportError | null) => void
  /** Why it can't be sent whatever policy says */
  obstacle: SallyportError | null = null

  /** `decided` is told once, in the turn in which the last is admitted or one is refused. */
  constructor(
    held: Held,
    patience: Patience,
    governor: Pick<Governor, 'confirm'>,
    ask: (ask: Ask, asking: Asking) => void,
    decided: (asking: Asking, refusal: SallyportError | null) => void,
  ) {
    this.held = held
    this.patience = patience
    this.#governor = governor
    this.#ask = ask
    this.#decided = decided
  }

  /** `obstacle` tells why it can't be sent, whatever policy says; a promise of that never rejects. */
  start(obstacle: Obstacle): void {
    if (isLong(this.held.line)) void this.#inTurns(obstacle) // never rejects
    else this.#meet(obstacle)
  }

  /** Reads what is long, and meets what is in the way, each in a turn of its own. */
  async #inTurns(obstacle: Obstacle): Promise<void> {
    for (const ask of this.held.asks) {
      await ownTurn()
      void ask.arguments
    }
    await ownTurn()
    const { reason } = this.patience
    if (reason === null) this.#meet(obstacle)
    else this.refused(reason)
  }

  #meet(obstacle: Obstacle): void {
    try {
      const found = obstacle()
      if (found instanceof Promise) void found.then((late) => this.#begin(late))
      else this.#begin(found)
    } catch (thrown) {
      this.refused(SallyportError.from(thrown))
    }
  }

  #begin(obstacle: SallyportError | null): void {
    this.obstacle = obstacle
    if (this.held.asks.length === 0) this.#decided(this, obstacle)
    else this.#next()
  }

  admitted(admission: Admission): void {
    this.admissions = this.admissions.length === 0 ? [admission] : [...this.admissions, admission]
    this.#next()
  }

  refused(error: SallyportError): void {
    this.#decided(this, error)
  }

  #next(): void {
    const ask = this.held.asks[this.admissions.length]
    if (ask === undefined) this.#confirm()
    else asking.add(() => this.#askAbout(ask))
  }

  /** What was admitted while the rest was asked about must still hold, in the turn in which the last of it is. */
  #confirm(): void {
    const earlier = this.admissions.length > 1 ? this.admissions.slice(0, -1) : []
    for (const admission of earlier) {
      const refused = this.#governor.confirm(admission)
      if (refused !== null) return void refused.then((error) => this.refused(error))
    }
    // Their permits are used up: a refusal would keep all that was proposed for as long as the request is open.
    if (earlier.length > 0) this.admissions = this.admissions.map((one) => ({ ...one, refuse: null }))
    this.#decided(this, null)
  }

  #askAbout(ask: Ask): void {
    try {
      this.#ask(ask, this)
    } catch (thrown) {
      this.refused(SallyportError.from(thrown))
    }
  }
}
