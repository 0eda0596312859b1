// Outcomes on their way into the journal, behind the answers that they tell of.
import { recordOutcome } from '../call/govern.ts'
import type { Recorder } from '../call/ports.ts'
import type { Admission, Outcome } from '../schema/governor.ts'

/** A call that has ended. */
interface Ended {
  readonly admission: Admission
  readonly outcome: Outcome
  /** What became of the call's secrets; null where it had none */
  readonly used: Readonly<Record<string, unknown>> | null
}

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
    for (const { admission, outcome, used } of ended) {
      // The journal's own events tell where it fails, and without a record there is no evidence.
      recordOutcome(admission, outcome, { recorder: this.#recorder }, used).catch(() => undefined)
    }
  }
}
