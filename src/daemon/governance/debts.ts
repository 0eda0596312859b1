// Facts that had effect before their record: what only takes away may not wait for a disk, and must be written all the same.
import type { StrictFact } from '../../call/facts.ts'
import type { Ledger } from '../../call/ledger.ts'
import type { Debt, OwedFile } from './owed-file.ts'
import type { JournalRecorder } from './recorder.ts'

const againMs = 500

/** What the ledger was told ahead of its record; all else is over, and nothing is looked up in it. */
const isAnticipated = (fact: Debt['fact']): fact is StrictFact =>
  !['approval.ended', 'permit.revoked', 'subscription.ended'].includes(fact.type)

/**
 * Records what has effect already. What can't be recorded stays in effect and is tried again, twice a second and before
 * every further fact, until it can; while it can't, nothing is called (MP-FH-010), and a file beside the journal has it for
 * the case that the daemon is killed.
 */
export class Debts implements AsyncDisposable {
  readonly #ledger: Ledger
  readonly #recorder: Pick<JournalRecorder, 'record'>
  readonly #file: OwedFile
  /** In the order in which they had effect, which is that of their records */
  readonly #unpaid = new Set<Debt>()
  /** Those of them that the recorder has at present */
  readonly #handed = new Set<Debt>()
  /** Resolves when what was handed to the recorder is recorded, or owed again */
  #underWay: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | null = null
  #hasFailed = false

  constructor(ledger: Ledger, recorder: Pick<JournalRecorder, 'record'>, file: OwedFile) {
    this.#ledger = ledger
    this.#recorder = recorder
    this.#file = file
  }

  /** Records anticipated facts as one batch; rejects where that fails, and goes on trying. */
  async owe(debts: readonly Debt[]): Promise<void> {
    for (const debt of debts) this.#unpaid.add(debt)
    await this.#record()
  }

  /** True from a record that failed until nothing is owed any more. */
  get areOwed(): boolean {
    return this.#hasFailed
  }

  /** Resolves when nothing is owed any more, what is on its way into the journal included, and what has come meanwhile. */
  async pay(): Promise<void> {
    for (;;) {
      const recording = this.#record()
      const underWay = this.#underWay
      await recording
      await underWay
      if (this.#owed.length === 0 && underWay === this.#underWay) return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.pay().catch(() => undefined) // the journal's own events tell of it
  }

  get #owed(): readonly Debt[] {
    return this.#unpaid.size === 0 ? [] : [...this.#unpaid].filter((debt) => !this.#handed.has(debt))
  }

  #record(): Promise<void> {
    const owed = this.#owed
    if (owed.length === 0) return Promise.resolve()
    const recording = this.#recordAll(owed)
    const before = this.#underWay
    this.#underWay = recording.catch(() => undefined).then(() => before)
    return recording
  }

  async #recordAll(owed: readonly Debt[]): Promise<void> {
    for (const debt of owed) this.#handed.add(debt)
    try {
      await Promise.all(
        owed.map(({ fact: { type, body }, evidence }) =>
          this.#recorder.record(type, { ...body, ...evidence }),
        ),
      )
      for (const debt of owed) this.#paid(debt)
      if (this.#unpaid.size > 0) return
      this.#hasFailed = false
      this.#file.clear()
    } catch (error) {
      this.#hasFailed = true
      for (const debt of owed) this.#handed.delete(debt)
      this.#file.write([...this.#unpaid])
      this.#timer ??= setTimeout(() => this.#again(), againMs).unref()
      throw error
    }
  }

  #paid(debt: Debt): void {
    this.#unpaid.delete(debt)
    this.#handed.delete(debt)
    const { fact } = debt
    if (isAnticipated(fact)) this.#ledger.arrived(fact)
  }

  #again(): void {
    this.#timer = null
    this.pay().catch(() => undefined) // it is owed still, and the timer is set anew
  }
}
