// Governance composed: the journal, what it adds up to, people, permits, and the governor that stands before every server.
import { hash } from 'node:crypto'
import { Approvals, type ApprovalHappening } from '../call/approve.ts'
import { govern, recordOutcome } from '../call/govern.ts'
import { type Fact, Ledger } from '../call/ledger.ts'
import { Permits } from '../call/permit.ts'
import type { GovernPorts } from '../call/ports.ts'
import { isProvisional } from '../call/trust.ts'
import { catalogue, type SallyportError } from '../errors.ts'
import { Journal } from '../journal/journal.ts'
import { loadKey } from '../journal/key.ts'
import type { JournalRecord } from '../journal/record.ts'
import type { DaemonId } from '../lib/ids.ts'
import type { Gate } from '../schema/gate.ts'
import type { Admission, Governor, Outcome, Proposal } from '../schema/governor.ts'
import type { Rule, ServerSettings, Settings } from '../schema/settings.ts'
import type { Emit } from '../supervisor/ports.ts'
import { ArgumentSchemas } from './argument-schemas.ts'
import { event, failureEvents } from './failure-events.ts'
import { Past } from './past.ts'
import { JournalRecorder } from './recorder.ts'
import { digestOfTool, Surfaces } from './surfaces.ts'

export interface GovernanceOptions {
  readonly settings: Pick<Settings, 'servers' | 'approval' | 'permit' | 'trust' | 'journal'>
  /** The journal's folder */
  readonly directory: string
  /** Outside of it */
  readonly keyPath: string
  readonly daemon: DaemonId
  readonly emit: Emit
  readonly codeOf: (server: ServerSettings) => string
  /** Stops a server for all, and keeps it stopped */
  readonly halt: (server: string, reason: string) => void
  /** Sees every record that is there already, in order */
  readonly replay?: (record: JournalRecord) => void
}

/** The ledger, the permits and the approvals of one daemon; whoever opened it disposes of it, after the servers. */
export class Governance implements AsyncDisposable {
  readonly ledger: Ledger
  readonly permits = new Permits(() => performance.now())
  readonly approvals: Approvals
  readonly surfaces: Surfaces
  readonly recorder: JournalRecorder
  readonly journal: Journal
  readonly #options: GovernanceOptions
  readonly #schemas = new ArgumentSchemas()
  #listeners = 0

  private constructor(options: GovernanceOptions, ledger: Ledger, journal: Journal) {
    const { settings, directory, emit, codeOf } = options
    this.#options = options
    this.ledger = ledger
    this.journal = journal
    this.recorder = new JournalRecorder({
      journal,
      directory,
      evidenceBytes: settings.journal.evidenceBytes,
      isSynced: settings.journal.durability === 'fsync',
      redact: (text) => text,
    })
    this.approvals = new Approvals({
      ...settings.approval,
      now: () => performance.now(),
      listeners: () => this.#listeners,
      tell: (happening) => this.#tellOperators(happening),
    })
    const add = (fact: Fact): Promise<void> => this.add(fact)
    this.surfaces = new Surfaces({
      ledger,
      add,
      emit,
      codeOf,
      violate: (...violation) => this.violate(...violation),
      quarantine: (...reason) => this.quarantine(...reason),
    })
  }

  /** Reads the journal and ends what it left open. Throws what `Journal.open` throws. */
  static async open(options: GovernanceOptions): Promise<Governance> {
    const { settings, directory, keyPath, daemon, emit, replay } = options
    const ledger = new Ledger(settings.trust)
    const past = new Past(ledger)
    const journal = Journal.open({
      directory,
      key: await loadKey(keyPath),
      daemon,
      durability: settings.journal.durability,
      segmentBytes: settings.journal.segmentBytes,
      replay: (record: JournalRecord) => {
        past.fold(record)
        replay?.(record)
      },
      health: (failure) =>
        emit(
          event(failure === null ? 'journal/mended' : 'journal/failed', null, failure?.toRpc().data ?? {}),
        ),
    })
    const governance = new Governance(options, ledger, journal)
    for (const outcome of past.unfinished()) await governance.recorder.record('call.outcome', outcome)
    for (const standing of past.standing(performance.now())) governance.approvals.restore(standing)
    return governance
  }

  /** Halts what stands halted, once there is something that can be. */
  resume(): void {
    for (const { server, reason } of this.ledger.quarantined()) this.#options.halt(server, reason)
  }

  /** Makes a fact durable, then true. */
  async add(fact: Fact): Promise<void> {
    await this.recorder.record(fact.type, { ...fact.body })
    this.ledger.apply(fact)
  }

  /** Operator connections that listen for approvals. */
  get listeners(): number {
    return this.#listeners
  }

  /** An operator listens for approvals until the returned function is called. */
  listen(): () => void {
    this.#listeners += 1
    let isListening = true
    return () => {
      if (isListening) this.#listeners -= 1
      isListening = false
    }
  }

  /**
   * Resets a tool's trust at once, whatever becomes of the record: its permits and approvals are void before anything
   * is written.
   */
  async violate(server: string, tool: string, failure: string, detail: string): Promise<void> {
    const { settings, emit } = this.#options
    const all = [...(this.ledger.accepted(server)?.tools.keys() ?? [])]
    const tools = settings.trust.contaminate === 'server' ? [...new Set([tool, ...all])] : [tool]
    const at = new Date().toISOString()
    const recorded = tools.map((name) => {
      const body = { server, tool: name, at, failure, detail }
      this.ledger.apply({ type: 'trust.violated', body })
      const isOf = (identity: string): boolean => identity.startsWith(`${server}/${name}@`)
      const permits = this.permits.revoke(({ binding }) => isOf(binding.identity))
      const approvals = this.approvals.void(({ identity }) => isOf(identity))
      emit(event('trust/violated', server, { tool: name, failure, reason: detail }))
      return this.recorder.record('trust.violated', { ...body, permits, approvals })
    })
    await Promise.all(recorded)
  }

  /** A tool begins anew on an operator's word; its permits and approvals end with what it had earned. */
  async resetTrust(server: string, tool: string, reason: string, by: string): Promise<void> {
    await this.add({ type: 'trust.reset', body: { server, tool, reason, by } })
    const isOf = (identity: string): boolean => identity.startsWith(`${server}/${tool}@`)
    this.permits.revoke(({ binding }) => isOf(binding.identity))
    this.approvals.void(({ identity }) => isOf(identity))
    this.#options.emit(event('trust/reset', server, { tool, reason, by }))
  }

  /** Digest over what runs as this server: program, package, arguments. */
  codeOf(server: ServerSettings): string {
    return this.#options.codeOf(server)
  }

  /** Halts a server for all until an operator releases it; every tool's trust is reset. */
  async quarantine(server: string, failure: string, reason: string): Promise<void> {
    const { emit, halt } = this.#options
    const body = { server, failure, reason }
    this.ledger.apply({ type: 'server.quarantined', body })
    emit(event(failureEvents[failure] ?? 'server/quarantined', server, { failure, reason }))
    halt(server, reason)
    await this.recorder.record('server.quarantined', body)
    for (const tool of this.ledger.accepted(server)?.tools.keys() ?? [])
      await this.violate(server, tool, failure, reason)
  }

  /** The server did what its declaration or its grants do not cover (MP-FH-008). */
  async violateScope(server: string, detail: string): Promise<void> {
    await this.quarantine(server, 'MP-FH-008', detail)
  }

  /** The governor under a set of rules. */
  governor({ rules, gate }: { readonly rules: readonly Rule[]; readonly gate: Gate }): Governor {
    const ports: GovernPorts = {
      policyVersion: hash('sha256', JSON.stringify(rules)).slice(0, 16),
      decide: (request, trust) => gate.decide(request, isProvisional(trust)),
      registry: {
        standing: (...args) => this.ledger.standing(...args),
        trust: (...args) => this.ledger.trust(...args),
        hold: (...args) => this.ledger.hold(...args),
        contains: (server, _effects, scopes) => this.#contains(server, scopes),
        invalidArguments: (server, tool, args) => this.invalidArguments(server, tool, args),
      },
      approver: this.approvals,
      permits: this.permits,
      permitTtlMs: this.#options.settings.permit.ttlMs,
      recorder: this.recorder,
      refuse: (proposal, error) => this.#refused(proposal, error),
    }
    return {
      admit: (proposal, waiting) => govern(proposal, ports, waiting),
      settle: (admission, outcome) => void this.#settle(admission, outcome),
      observe: (seen) => this.surfaces.observe(seen),
      shows: (server, instance, tool) => this.#shows(server, instance, tool),
      forget: (instance) => {
        this.ledger.forget(instance)
        this.approvals.endSession(instance) // a control call's session is its instance
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#schemas[Symbol.asyncDispose]()
    await this.journal[Symbol.asyncDispose]()
  }

  async #settle(admission: Admission, outcome: Outcome): Promise<void> {
    const { server, kind, subject, principal, call } = admission
    if (outcome.kind === 'timeout') {
      const detail = { call, tool: subject, failure: 'MP-FH-004', reason: outcome.detail }
      this.#options.emit(event('call/timeout', server, detail, principal))
    }
    try {
      await recordOutcome(admission, outcome, this)
    } catch {
      return // the journal's own events tell of it, and without a record there is no evidence
    }
    this.ledger.apply({ type: 'call.outcome', body: { server, kind, subject, outcome: outcome.kind } })
  }

  #shows(server: ServerSettings, instance: Parameters<Governor['shows']>[1], tool: unknown): boolean {
    const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : null
    if (typeof name !== 'string') return false
    const standing = this.ledger.standing(server.name, instance, 'tool', name)
    if (standing.state !== 'accepted' || standing.tool === null) return false
    const digest = digestOfTool(tool)
    if (digest === standing.tool.surfaceDigest) return true
    if (instance !== null) this.surfaces.deviates(server.name, instance, name, digest ?? 'unreadable')
    return false
  }

  /** Null, or where and why the arguments are not what the accepted schema says. */
  invalidArguments(server: string, name: string, args: unknown): Promise<string | null> | string | null {
    const tool = this.ledger.accepted(server)?.tools.get(name)
    return tool === undefined ? null : this.#schemas.judge(tool, args)
  }

  /** Scopes are places in the sandbox: a path under a mount or in its scratch space. It has no network. */
  #contains(server: string, scopes: readonly string[]): boolean {
    if (scopes.length === 0) return true
    const mounts = this.#options.settings.servers.get(server)?.mounts ?? []
    const places = ['/tmp', ...mounts.map(({ target }) => target)]
    return scopes.every((scope) => places.some((place) => scope === place || scope.startsWith(`${place}/`)))
  }

  #refused({ call, server, subject, instance, principal }: Proposal, error: SallyportError): void {
    const { emit } = this.#options
    const { failure } = catalogue[error.code]
    const detail = { call, tool: subject, ...error.details, code: error.code, failure, reason: error.message }
    emit({ type: 'call/denied', server: server.name, instance, principal, detail })
    if (failure !== null)
      emit({ type: failureEvents[failure] ?? failure, server: server.name, instance, principal, detail })
  }

  #tellOperators(happening: ApprovalHappening): void {
    const { emit } = this.#options
    const record = (type: string, body: Readonly<Record<string, unknown>>): void =>
      // What can't be recorded stands only in memory, and no call that uses it is admitted unrecorded.
      void this.recorder.record(type, body).catch(() => undefined)
    switch (happening.kind) {
      case 'asked':
        record('approval.asked', { ...happening.pending })
        return emit(event('approval/asked', null, { ...happening.pending }, 'operator'))
      case 'settled':
        return emit(event('approval/settled', null, { id: happening.id, ...happening.answer }, 'operator'))
      case 'standing': {
        const { expiresAt, ...approval } = happening.approval
        const leftMs = expiresAt - performance.now()
        return record('approval.standing', {
          ...approval,
          expires_at: new Date(Date.now() + leftMs).toISOString(),
        })
      }
      case 'ended':
        return record('approval.ended', { ids: happening.ids })
    }
  }
}
