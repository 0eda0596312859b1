// Outcomes on their way into the journal, behind the answers that they tell of.
import { recordOutcome } from '../call/govern.ts'
import type { Ended, Recorder } from '../call/ports.ts'

/** Recorded at the end of the turn of the event loop in which they came, or when whoever ends asks for it. */
export class Outcomes {
  readonly #recorder: Recorder
  #ended: Ended[] = []

  constructor(recorder: Recorder) {
    this.#recorder = recorder
  }

  add(ended: Ended): void {
    this.#ended.push(ended)
    if (this.#ended.length === 1) setImmediate(() => this.record())
  }

  /** Hands all of them to the journal now. */
  record(): void {
    const ended = this.#ended
    this.#ended = []
    for (const one of ended) recordOutcome(one, { recorder: this.#recorder })
  }
}
