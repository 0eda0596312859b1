// Outcomes on their way into the journal, behind the answers that they tell of.
import { recordOutcome } from '../../call/govern.ts'
import type { Ended, Recorder, Told } from '../../call/ports.ts'
import type { SallyportError } from '../../errors.ts'
import type { Tell } from './health.ts'

/** Longest that an outcome waits for other records to be written with, ms */
const putOffMs = 5
const againMs = 500
/** Most of the answers of calls whose outcomes are owed, characters */
const mostOwed = 67_108_864

/**
 * Recorded in the order in which they came, with the next intent or by themselves. What the journal does not take is owed:
 * it is tried again twice a second and before every further call, and nothing is called before it is on record.
 */
export class Outcomes {
  readonly #recorder: Recorder
  readonly #tell: Tell
  readonly #mostOwed: number
  #ended: Ended[] = []
  #isSoon = false
  #timer: NodeJS.Timeout | null = null
  /** The last that was handed to the journal, of those of which it has not said yet what became of them */
  #handed: Handed | null = null
  #owed: Ended[] = []
  #owedLength = 0
  #again: NodeJS.Timeout | null = null
  #paying: Promise<void> | null = null
  /** What the journal said last of what is owed */
  #failure: SallyportError | null = null

  constructor(recorder: Recorder, tell: Tell, most = mostOwed) {
    this.#recorder = recorder
    this.#tell = tell
    this.#mostOwed = most
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

  /** True while something is owed: then nothing may be called. */
  get areOwed(): boolean {
    return this.#owed.length > 0 || this.#paying !== null
  }

  /** Hands all that came so far to the journal. */
  record(): void {
    const ended = this.#ended
    this.#ended = []
    for (const one of ended) this.#hand(one)
  }

  /** Records what is owed; resolves with null, or with why it still can't be. */
  async pay(): Promise<SallyportError | null> {
    this.#paying ??= this.#pay().finally(() => (this.#paying = null))
    await this.#paying
    if (this.#owed.length > 0) return this.#failure
    this.#tell(null)
    return null
  }

  /** Records what is left, before the journal is closed. */
  close(): void {
    for (const timer of [this.#timer, this.#again]) if (timer !== null) clearTimeout(timer)
    for (const one of this.#owed) recordOutcome(one, { recorder: this.#recorder })
    this.record()
  }

  /** Resolves when what came so far is durable, or can't be recorded at present. */
  async settled(): Promise<void> {
    if (this.areOwed) await this.pay()
    this.record()
    const over: Promise<void>[] = []
    for (let handed = this.#handed; handed !== null; handed = handed.before) over.push(handed.over())
    await Promise.all(over)
  }

  #hand(ended: Ended): Handed {
    const handed = new Handed(ended, this.#handed, this.#over)
    this.#handed = handed
    recordOutcome(ended, { recorder: this.#recorder }, handed)
    return handed
  }

  readonly #over = (handed: Handed, failure: SallyportError | null): void => {
    if (this.#handed === handed) this.#handed = handed.before
    handed.leave()
    if (failure !== null) this.#owe(handed.ended, failure)
  }

  async #pay(): Promise<void> {
    const owed = this.#owed
    this.#owed = []
    this.#owedLength = 0
    await Promise.all(owed.map((one) => this.#hand(one).over()))
  }

  #owe(ended: Ended, failure: SallyportError): void {
    this.#failure = failure
    if (failure.code === 'ERR_JOURNAL') this.#tell(failure)
    this.#owed.push(this.#kept(ended, failure))
    this.#again ??= setTimeout(() => {
      this.#again = null
      if (this.#owed.length > 0) void this.pay()
    }, againMs).unref()
  }

  /** No answer may be why calls stop for ever: one at which something else than the disk failed is not tried again. */
  #kept(ended: Ended, failure: SallyportError): Ended {
    if (failure.code !== 'ERR_JOURNAL') return withoutAnswer(ended, `(${failure.message})`)
    const length = this.#owedLength + (ended.outcome.bytes?.length ?? 0)
    if (length > this.#mostOwed) return withoutAnswer(ended, 'while the journal could not be written')
    this.#owedLength = length
    return ended
  }
}

/**
 * One that the journal has, and has not said yet what became of it. They hold on to each other instead of standing in a Set,
 * whose tables each lead to the next: once one is old, all that came later outlives every young collection.
 */
class Handed implements Told {
  readonly ended: Ended
  before: Handed | null
  #after: Handed | null = null
  readonly #over: (handed: Handed, failure: SallyportError | null) => void
  #waited: PromiseWithResolvers<void> | null = null

  constructor(
    ended: Ended,
    before: Handed | null,
    over: (handed: Handed, failure: SallyportError | null) => void,
  ) {
    this.ended = ended
    this.before = before
    if (before !== null) before.#after = this
    this.#over = over
  }

  /** Leaves those before and after it to each other, and holds none of them. */
  leave(): void {
    if (this.before !== null) this.before.#after = this.#after
    if (this.#after !== null) this.#after.before = this.before
    this.before = null
    this.#after = null
  }

  /** Resolves when the journal has said it. */
  over(): Promise<void> {
    this.#waited ??= Promise.withResolvers()
    return this.#waited.promise
  }

  durable(): void {
    this.#over(this, null)
    this.#waited?.resolve()
  }

  failed(failure: SallyportError): void {
    this.#over(this, failure)
    this.#waited?.resolve()
  }
}

const withoutAnswer = ({ outcome, ...ended }: Ended, why: string): Ended => {
  const detail = `its answer of ${outcome.bytes?.length ?? 0} characters was not kept ${why}`
  return { ...ended, outcome: { ...outcome, bytes: null, detail: outcome.detail ?? detail } }
}
