// Outcomes on their way into the journal, behind the answers that they tell of.
import { recordOutcome } from '../call/govern.ts'
import type { Ended, Recorder, Told } from '../call/ports.ts'

/** Longest that an outcome waits for other records to be written with, ms */
const putOffMs = 5

/** Recorded in the order in which they came, with the next intent or by themselves. */
export class Outcomes {
  readonly #recorder: Recorder
  #ended: Ended[] = []
  #isSoon = false
  #timer: NodeJS.Timeout | null = null

  constructor(recorder: Recorder) {
    this.#recorder = recorder
  }

  /** Recorded at the end of the turn of the event loop. */
  add(ended: Ended): void {
    this.#ended.push(ended)
    if (this.#isSoon) return
    this.#isSoon = true
    setImmediate(() => {
      this.#isSoon = false
      this.record()
    })
  }

  /** For what changes nothing that anybody decides by: recorded with the next record of a call, 5 ms from now at the latest. */
  putOff(ended: Ended): void {
    this.#ended.push(ended)
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.record()
    }, putOffMs)
  }

  /** Hands all of them to the journal now; `told` hears what becomes of each. */
  record(told?: Told): void {
    if (this.#ended.length === 0) return
    const ended = this.#ended
    this.#ended = []
    for (const one of ended) recordOutcome(one, { recorder: this.#recorder }, told)
  }

  /** Records what is left, before the journal is closed. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.record()
  }

  /** Resolves when what came so far is durable, or can't be recorded. */
  async settled(): Promise<void> {
    if (this.#ended.length === 0) return
    await new Promise<void>((resolve) => this.record({ durable: () => resolve(), failed: () => resolve() }))
  }
}
