// Governance composed: the journal, what it adds up to, people, permits, and the governor that stands before every server.
import { Abouts } from '../call/about.ts'
import { Approvals } from '../call/approve.ts'
import { govern } from '../call/govern.ts'
import type { Fact } from '../call/facts.ts'
import { Ledger } from '../call/ledger.ts'
import { Permits } from '../call/permit.ts'
import type { GovernPorts } from '../call/ports.ts'
import { isProvisional } from '../call/trust.ts'
import { uncontained } from '../config/containment.ts'
import type { Journal } from '../journal/journal.ts'
import type { SallyportError } from '../errors.ts'
import { loadKey } from '../journal/key.ts'
import type { DaemonId } from '../lib/ids.ts'
import type { Gate } from '../schema/gate.ts'
import type { Admission, Governor, Outcome } from '../schema/governor.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import type { Emit } from '../supervisor/ports.ts'
import { ArgumentSchemas } from './argument-schemas.ts'
import type { Redactor } from '../schema/redactor.ts'
import type { Actor } from './actor.ts'
import { Consequences } from './consequences.ts'
import { event, tellRefusal } from './failure-events.ts'
import { recordFindings } from './findings.ts'
import { type Foldable, Keeping } from './keeping.ts'
import { OwedFile } from './owed-file.ts'
import { type Applied, Past } from './past.ts'
import { confirm } from './confirm.ts'
import { tellOperators } from './approval-events.ts'
import { Outcomes } from './outcomes.ts'
import type { Outfits } from './outfits.ts'
import { JournalRecorder } from './recorder.ts'
import { digestOfTool } from './seen.ts'
import { Surfaces } from './surfaces.ts'

export interface GovernanceOptions {
  readonly settings: Pick<Settings, 'servers' | 'profiles' | 'approval' | 'permit' | 'trust' | 'journal'>
  /** The journal's folder */
  readonly directory: string
  /** Outside of it */
  readonly keyPath: string
  /** Where a violation is kept that the journal does not take: files on disks that may fail independently */
  readonly owedPaths?: readonly string[]
  readonly daemon: DaemonId
  readonly emit: Emit
  readonly codeOf: (server: ServerSettings) => string
  readonly originOf: (server: ServerSettings) => string | null
  readonly ownerOf: (server: string) => string | null
  /** Stops a server for all, and keeps it stopped */
  readonly halt: (server: string, reason: string) => Promise<void> | void
  readonly redactor: Redactor
  readonly separation: 'full' | 'none'
  /** Further folds of the journal, by the name that a snapshot gives them */
  readonly folds?: Readonly<Record<string, Foldable>>
  /** Leases for calls, and who was in flight when */
  readonly outfits: Pick<Outfits, 'foresee' | 'equip' | 'settle'>
}

/** What decides about calls. */
interface Decider {
  readonly gate: Gate
  readonly versionOf: (server: string) => string
}

/** The ledger, the permits and the approvals of one daemon; whoever opened it disposes of it, after the servers. */
export class Governance implements AsyncDisposable {
  readonly ledger: Ledger
  readonly permits = new Permits(() => performance.now())
  readonly approvals: Approvals
  readonly surfaces: Surfaces
  readonly consequences: Consequences
  readonly recorder: JournalRecorder
  readonly #outcomes: Outcomes
  readonly journal: Journal
  readonly #options: GovernanceOptions
  readonly #schemas = new ArgumentSchemas()
  readonly #past: Past
  readonly #keeping: Keeping
  #listeners = 0

  private constructor(options: GovernanceOptions, past: Past, keeping: Keeping, owed: OwedFile) {
    const { settings, directory, emit, codeOf, redactor, separation } = options
    this.#options = options
    this.ledger = past.ledger
    this.#past = past
    this.#keeping = keeping
    this.journal = keeping.journal
    const folds: readonly Foldable[] = [past, ...Object.values(options.folds ?? {})]
    this.recorder = new JournalRecorder({
      journal: keeping.journal,
      directory,
      evidenceBytes: settings.journal.evidenceBytes,
      isSynced: settings.journal.durability === 'fsync',
      redactor,
      separation,
      folded: (record) => {
        for (const fold of folds) fold.fold(record)
      },
    })
    this.#outcomes = new Outcomes(this.recorder)
    this.approvals = new Approvals({
      limits: () => settings.approval,
      now: () => performance.now(),
      listeners: () => this.#listeners,
      tell: (happening) => tellOperators(happening, this.recorder, emit),
    })
    const { ledger, permits, approvals, recorder } = this
    this.consequences = new Consequences({ ...options, ledger, permits, approvals, recorder, owed })
    const add: Governance['add'] = (...fact) => this.add(...fact)
    this.surfaces = new Surfaces({
      ledger,
      add,
      emit,
      codeOf,
      profileOf: ({ profile }) => settings.profiles.get(profile) ?? null,
      violate: (...violation) => this.consequences.violate(...violation),
      quarantine: (...reason) => this.consequences.quarantine(...reason),
    })
  }

  /** Reads the journal and ends what it left open. Throws what `Keeping.open` throws. */
  static async open(options: GovernanceOptions): Promise<Governance> {
    const { settings, directory, keyPath, owedPaths = [], daemon, emit, redactor, separation } = options
    const ledger = new Ledger(settings.trust)
    const past = new Past(ledger)
    const key = await loadKey(keyPath)
    const tell = (type: string, detail = {}): void => emit(event(type, null, detail))
    const warn = ({ code, message }: SallyportError): void =>
      tell('journal/not-kept', { code, reason: message })
    const owed = new OwedFile({ paths: owedPaths, key, redactor, warn })
    const keeping = Keeping.open({
      directory,
      key,
      daemon,
      durability: settings.journal.durability,
      segmentBytes: settings.journal.segmentBytes,
      keepDays: settings.journal.keepDays,
      about: { separation },
      folds: { past, ...options.folds },
      record: (type, body) => governance.recorder.record(type, body),
      warn,
      health: (failure) =>
        tell(failure === null ? 'journal/mended' : 'journal/failed', failure?.toRpc().data),
    })
    const governance = new Governance(options, past, keeping, owed)
    const inherited = owed.read()
    await recordFindings(keeping, inherited, governance.recorder, emit)
    keeping.keepHead()
    await governance.consequences.inherit(inherited.debts)
    ledger.measure(settings.trust) // a snapshot's tiers are of the thresholds of its day
    for (const outcome of past.unfinished()) await governance.recorder.record('call.outcome', outcome)
    for (const standing of past.standing(performance.now())) governance.approvals.restore(standing)
    return governance
  }

  /** Halts what stands halted of these servers, or of all, once there is something that can be. */
  resume(servers: readonly string[] | null = null): void {
    for (const { server, reason } of this.ledger.quarantined())
      if (servers?.includes(server) ?? true) void this.#options.halt(server, reason)
  }

  /** Makes a fact durable, then true; further members are evidence and change nothing. */
  async add({ type, body }: Fact, evidence: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.consequences.recorded()
    await this.recorder.record(type, { ...body, ...evidence })
  }

  /** Where the journal last says what the configuration came to. */
  readonly applied = (type: Parameters<Past['applied']>[0]): Applied | null => this.#past.applied(type)

  /** Other settings hold: permits and approvals of these servers, or with null of all, end; who waits for one is decided again. */
  reloaded(servers: ReadonlySet<string> | null): {
    readonly permits: readonly string[]
    readonly approvals: readonly string[]
  } {
    this.ledger.measure(this.#options.settings.trust)
    const isOver = (identity: string): boolean =>
      servers?.has(identity.slice(0, identity.indexOf('/'))) ?? true
    return {
      permits: this.permits.revoke(({ binding }) => isOver(binding.identity)),
      approvals: this.approvals.void(({ identity }) => isOver(identity)),
    }
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

  /** A tool begins anew on an operator's word; its permits and approvals end with what it had earned. */
  async resetTrust(server: string, tool: string, reason: string, actor: Actor): Promise<void> {
    const { by } = actor
    await this.add({ type: 'trust.reset', body: { server, tool, reason, by } }, { ...actor })
    this.consequences.end(server, tool)
    this.#options.emit(event('trust/reset', server, { tool, reason, by }))
  }

  /** Digest over what runs as this server: program, package, arguments. */
  codeOf(server: ServerSettings): string {
    return this.#options.codeOf(server)
  }

  /** The server did what its declaration or its grants do not cover (MP-FH-008). */
  async violateScope(server: string, detail: string): Promise<void> {
    await this.consequences.quarantine(server, 'MP-FH-008', detail)
  }

  /** The governor under a policy; `versionOf` tells what decides about a server's calls from what did before. */
  governor({ gate, versionOf }: Decider): Governor {
    const ports: GovernPorts = {
      policyVersion: versionOf,
      decide: (request, trust) => gate.decide(request, isProvisional(trust)),
      registry: {
        standing: (...args) => this.ledger.standing(...args),
        trust: (...args) => this.ledger.trust(...args),
        hold: (...args) => this.ledger.hold(...args),
        uncontained: (server, effects, scopes) => this.uncontained(server, effects, scopes),
        invalidArguments: (server, tool, args) => this.invalidArguments(server, tool, args),
      },
      approver: this.approvals,
      permits: this.permits,
      permitTtlMs: () => this.#options.settings.permit.ttlMs,
      recorder: this.recorder,
      abouts: new Abouts(),
      foresee: (ask) => this.#options.outfits.foresee(ask),
      equip: (ask, waiting) => this.#options.outfits.equip(ask, waiting),
      refuse: (proposal, error) => tellRefusal(proposal, error, this.#options.emit),
    }
    return {
      admit: (proposal, waiting) =>
        new Promise((admitted, refused) => govern(proposal, ports, waiting, { admitted, refused })),
      admitTo: (proposal, waiting, asker) => govern(proposal, ports, waiting, asker),
      confirm: (admission) => confirm(this, versionOf, admission),
      settle: (admission, outcome) => this.#settle(admission, outcome),
      observe: (seen) => this.surfaces.observe(seen),
      shows: (server, instance, tool) => this.#shows(server, instance, tool),
      forget: (instance) => {
        this.ledger.forget(instance)
        this.approvals.endSession(instance) // a control call's session is its instance
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#outcomes.record()
    await this.#schemas[Symbol.asyncDispose]()
    await this.consequences[Symbol.asyncDispose]()
    await this.#keeping[Symbol.asyncDispose]()
  }

  #settle(admission: Admission, outcome: Outcome): void {
    const { server, subject, principal, call } = admission
    if (admission.process !== null) this.permits.end({ id: admission.permit }) // it may never have been dispatched
    // At once: whatever becomes of the record, the call's secrets end with the call.
    const used = this.#options.outfits.settle(admission)
    if (outcome.kind === 'timeout') {
      const detail = { call, tool: subject, failure: 'MP-FH-004', reason: outcome.detail }
      this.#options.emit(event('call/timeout', server, detail, principal))
    }
    this.#outcomes.add({ admission, outcome, used })
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
    const accepted = this.ledger.accepted(server)
    const tool = accepted?.tools.get(name)
    if (accepted === null || tool === undefined) return null
    return this.#schemas.judge({ server, acceptance: accepted.declarationVersion }, tool, args)
  }

  /** What of these a server's sandbox does not contain, or null. */
  uncontained(name: string, effects: readonly string[], scopes: readonly string[]): string | null {
    const { servers, profiles } = this.#options.settings
    const server = servers.get(name)
    if (server === undefined) return effects.length + scopes.length > 0 ? `there is no server ${name}` : null
    return uncontained(server, profiles.get(server.profile) ?? null, effects, scopes)
  }
}
