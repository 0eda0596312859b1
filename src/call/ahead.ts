// Facts that have effect before they are durable: what only takes away waits for no disk.
import { type HoldBody, holdOf, type QuarantineBody, type StrictFact, violationOf } from './facts.ts'
import { afterReplacement, afterViolation, type TrustRecord } from './trust.ts'

export class Ahead {
  readonly #facts = new Set<StrictFact>()
  /** Server -> what halted it last in this life, until it is released */
  readonly #halts = new Map<string, StrictFact>()

  get isEmpty(): boolean {
    return this.#facts.size === 0
  }

  add(fact: StrictFact): void {
    this.#facts.add(fact)
    if (fact.type === 'server.quarantined') this.#halts.set(fact.body.server, fact)
  }

  /** Known by what it is, and no other has it: null where nothing halted it in this life. */
  lastHalt(server: string): object | null {
    return this.#halts.get(server) ?? null
  }

  /** The server was released. */
  released(server: string): void {
    const halt = this.#halts.get(server)
    if (halt !== undefined && !this.#facts.has(halt)) this.#halts.delete(server)
  }

  /** It is applied now, or ahead no more for another reason. */
  delete(fact: StrictFact): void {
    this.#facts.delete(fact)
  }

  /** What these facts leave of a tool's record; the same object where they are not about it. */
  trust(record: TrustRecord, server: string, tool: string): TrustRecord {
    let left = record
    for (const { type, body } of this.#facts) {
      if (type === 'server.quarantined' || type === 'hold.placed') continue
      if (body.server !== server || body.tool !== tool) continue
      // A reset takes what was earned at once; that nothing is held against the tool any more it gives, with its record.
      left = type === 'trust.reset' ? afterReplacement(left) : afterViolation(left, violationOf(body))
    }
    return left
  }

  quarantined(): readonly QuarantineBody[] {
    return [...this.#facts].flatMap(({ type, body }) => (type === 'server.quarantined' ? [body] : []))
  }

  holds(): readonly HoldBody[] {
    return [...this.#facts].flatMap(({ type, body }) => (type === 'hold.placed' ? [holdOf(body)] : []))
  }
}
