// What a violation does, at once: what stood on the tool or the server ends, then it is written, or else owed.
import type { Approvals, QuestionEnd } from '../../call/approve.ts'
import type { HoldBody, StrictFact } from '../../call/facts.ts'
import type { Ledger } from '../../call/ledger.ts'
import type { Permits } from '../../call/permit.ts'
import { makeVisible } from '../../call/question.ts'
import { SallyportError } from '../../errors.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Actor } from './actor.ts'
import { Debts } from './debts.ts'
import { event, failureEvents } from './failure-events.ts'
import type { Debt, OwedFile } from './owed-file.ts'
import type { JournalRecorder } from './recorder.ts'

export interface ConsequencePorts {
  readonly settings: Pick<Settings, 'servers' | 'trust'>
  readonly ledger: Ledger
  readonly permits: Permits
  readonly approvals: Approvals
  readonly recorder: JournalRecorder
  readonly owed: OwedFile
  readonly emit: Emit
  /** Digest of what runs as a server, whatever it is called; null while it is not known */
  readonly originOf: (server: ServerSettings) => string | null
  /** Principal who launched a server, or null */
  readonly ownerOf: (server: string) => string | null
  /** Stops a server for all, and keeps it stopped; never rejects */
  readonly halt: (server: string, reason: string) => Promise<void> | void
}

/**
 * Takes away, and only that. Each method rejects where its record can't be made; what it took is gone all the same, and the
 * record is made before any other fact's.
 */
export class Consequences implements AsyncDisposable {
  readonly #ports: ConsequencePorts
  readonly #debts: Debts

  constructor(ports: ConsequencePorts) {
    this.#ports = ports
    this.#debts = new Debts(ports.ledger, ports.recorder, ports.owed)
  }

  /** Takes over what a killed daemon could not record; rejects where that still can't be, and nothing may be called then. */
  async inherit(debts: readonly Debt[]): Promise<void> {
    await this.#debts.owe(
      debts.map(({ fact, evidence }) => ({ fact, evidence: { ...evidence, owed: true } })),
    )
  }

  /** Resets the trust of the tools that one event speaks against, or of every tool of their server where violations contaminate: each once. */
  async violate(server: string, tools: readonly string[], failure: string, detail: string): Promise<void> {
    const { settings, ledger } = this.#ports
    const all = [...(ledger.accepted(server)?.tools.keys() ?? [])]
    const reached = settings.trust.contaminate === 'server' ? [...new Set([...tools, ...all])] : tools
    const beside = `trust.contaminate is server, and of ${tools.join(', ')}: ${detail}`
    const why = (name: string): string => (tools.includes(name) ? detail : beside)
    await this.#debts.owe(reached.map((name) => this.#violated(server, name, failure, why(name))))
  }

  /** What is no tool of a server is not what was accepted any more: no yes to a method stands, which has no trust of its own to lose. */
  elseChanged(server: string): void {
    const start = `${server}/`
    const isMethod = (subject: string): boolean => subject.slice(0, subject.indexOf('@')).includes('/')
    this.#ports.approvals.void(
      ({ identity }) => identity.startsWith(start) && isMethod(identity.slice(start.length)),
    )
  }

  /** Halts a server for all until an operator releases it; every tool's trust is reset, and no approval of anything of it stands. */
  async quarantine(server: string, failure: string, reason: string): Promise<void> {
    const tools = [...(this.#ports.ledger.accepted(server)?.tools.keys() ?? [])]
    const halted = this.#halted(server, failure, reason)
    const violated = tools.map((tool) => this.#violated(server, tool, failure, reason))
    // Resources and prompts have no trust of their own to lose: a yes to them stood on the server's.
    const approvals = this.#ports.approvals.void(({ identity }) => identity.startsWith(`${server}/`))
    const permits = this.#ports.permits.revoke(({ binding }) => binding.identity.startsWith(`${server}/`))
    // One batch: a server that is halted after a restart has lost its trust, too.
    await this.#debts.owe([{ fact: halted.fact, evidence: { approvals, permits } }, ...violated])
  }

  /** Halts a server that was lost too often. Nothing is held against its tools, and what it may do, it may again once it is released. */
  async storm(server: string, reason: string): Promise<void> {
    const { fact } = this.#halted(server, 'storm', reason)
    const permits = this.#ports.permits.revoke(({ binding }) => binding.identity.startsWith(`${server}/`))
    await this.#debts.owe([{ fact, evidence: { permits } }])
  }

  /** Halts a server on an operator's word, nothing is held against its tools. Resolves when it is stopped, with the permits that ended. */
  async stop(server: string, reason: string, actor: Actor): Promise<readonly string[]> {
    const { fact, stopped } = this.#halted(server, 'operator', reason)
    const ended = this.#ports.permits.revoke(({ binding }) => binding.identity.startsWith(`${server}/`))
    await Promise.all([stopped, this.#owe([{ fact, evidence: { ...actor, permits: ended } }])])
    return ended
  }

  /** Holds what the hold covers on an operator's word, from now on. */
  async hold(body: HoldBody, reason: string, actor: Actor): Promise<void> {
    const fact: StrictFact = { type: 'hold.placed', body }
    this.#ports.ledger.anticipate(fact)
    await this.#owe([{ fact, evidence: { ...actor, reason } }])
  }

  /** A tool begins anew on an operator's word: what it had earned is gone at once, with its permits, approvals and questions. */
  async reset(server: string, tool: string, reason: string, actor: Actor): Promise<void> {
    const { by } = actor
    const fact: StrictFact = { type: 'trust.reset', body: { server, tool, reason, by } }
    this.#ports.ledger.anticipate(fact)
    const why = `an operator reset the trust of ${server}/${tool}: ${makeVisible(reason)}` // the caller reads it
    this.end(server, tool, { by, reason: why })
    this.#ports.emit(event('trust/reset', server, { tool, reason, by }))
    await this.#owe([{ fact, evidence: { ...actor } }])
  }

  /** Ends permits on an operator's word; resolves with their ids. */
  async revoke(
    asked: { readonly permit: string | null; readonly server: string | null },
    reason: string,
    actor: Actor,
  ): Promise<readonly string[]> {
    const { permit, server } = asked
    const why = makeVisible(reason)
    const revoked = this.#ports.permits.revoke(
      ({ id, binding }) => (server === null ? id === permit : binding.identity.startsWith(`${server}/`)),
      why === '' ? null : { reason: `an operator revoked it: ${why}`, isNo: false },
    )
    await this.#owe([{ fact: { type: 'permit.revoked', body: asked }, evidence: { ...actor, reason } }])
    return revoked
  }

  /** Ends the permits and the approvals of a tool, and its questions, which `questions` answers; says which. */
  end(
    server: string,
    tool: string,
    questions?: QuestionEnd,
  ): Readonly<Record<'permits' | 'approvals', readonly string[]>> {
    const { permits, approvals } = this.#ports
    const isOf = (identity: string): boolean => identity.startsWith(`${server}/${tool}@`)
    const word = questions === undefined ? null : { reason: questions.reason, isNo: false }
    return {
      permits: permits.revoke(({ binding }) => isOf(binding.identity), word),
      approvals: approvals.void(({ identity }) => isOf(identity), questions),
    }
  }

  /**
   * Approvals stand no more, on whose word where it was an operator's, which a disk that fails puts off in the record alone: none of
   * them comes back with the next life.
   */
  ended(ids: readonly string[], { by, reason }: QuestionEnd): void {
    const evidence = by === null ? { reason } : { by, reason }
    this.#debts.owe([{ fact: { type: 'approval.ended', body: { ids } }, evidence }]).catch(() => undefined) // it is tried again
  }

  /** As `ended`, of what was admitted and lasted. */
  subscriptionEnded(body: Readonly<Record<string, unknown>>): void {
    this.#debts.owe([{ fact: { type: 'subscription.ended', body }, evidence: {} }]).catch(() => undefined)
  }

  /** True while a consequence could not be recorded: nothing is called before it is. */
  get areOwed(): boolean {
    return this.#debts.areOwed
  }

  /** Resolves when every consequence so far is on record. */
  async recorded(): Promise<void> {
    await this.#debts.pay()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#debts[Symbol.asyncDispose]()
  }

  /** As `Debts.owe`; an operator is told what holds though it could not be recorded. */
  async #owe(debts: readonly Debt[]): Promise<void> {
    await allTheSame(this.#debts.owe(debts))
  }

  #halted(
    server: string,
    failure: string,
    reason: string,
  ): Debt & { readonly stopped: Promise<void> | void } {
    const { settings, ledger, emit, halt, originOf, ownerOf } = this.#ports
    const entry = settings.servers.get(server)
    const origin = entry === undefined ? null : originOf(entry)
    const body = { server, origin, owner: ownerOf(server), failure, reason }
    const fact: StrictFact = { type: 'server.quarantined', body }
    ledger.anticipate(fact)
    const type = failureEvents[failure]
    if (type !== undefined) emit(event(type, server, { failure, reason }))
    return { fact, evidence: {}, stopped: halt(server, reason) }
  }

  #violated(server: string, tool: string, failure: string, detail: string): Debt {
    const { ledger, emit } = this.#ports
    const body = { server, tool, at: new Date().toISOString(), failure, detail }
    const fact: StrictFact = { type: 'trust.violated', body }
    ledger.anticipate(fact)
    const evidence = this.end(server, tool)
    emit(event('trust/violated', server, { tool, failure, reason: detail }))
    return { fact, evidence }
  }
}

/** Of what takes away: where the record of it fails, the operator is told that it holds. */
export async function allTheSame(recorded: Promise<unknown>): Promise<void> {
  try {
    await recorded
  } catch (thrown) {
    const { code, message, details } = SallyportError.from(thrown)
    const said = `it has effect all the same, and is recorded as soon as that can be: ${message}`
    throw new SallyportError(code, said, details, { cause: thrown })
  }
}
