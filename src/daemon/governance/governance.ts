// Governance composed: the journal, what it adds up to, people, permits, and the governors that stand before every server.
import { Approvals } from '../../call/approve.ts'
import type { Fact, RemovedBody } from '../../call/facts.ts'
import { Ledger } from '../../call/ledger.ts'
import { Permits } from '../../call/permit.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Confided } from '../../credentials/confided.ts'
import { loadKey } from '../../journal/key.ts'
import { nowMs } from '../../lib/clock.ts'
import { passedMs } from '../../lib/passed.ts'
import type { DaemonId } from '../../lib/ids.ts'
import { timeThatStands } from '../../lib/standing-clock.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { Emit } from '../../supervisor/ports.ts'
import type { Redactor } from '../../schema/redactor.ts'
import type { Actor } from './actor.ts'
import { Consequences } from './consequences.ts'
import { notKept } from './failure-events.ts'
import { recordFindings } from './findings.ts'
import { Governors } from './governors.ts'
import { Health } from './health.ts'
import { type Foldable, Keeping } from './keeping.ts'
import { OwedFile } from './owed-file.ts'
import { type Applied, Past } from './past.ts'
import { tellOperators } from './approval-events.ts'
import type { Outfits } from '../machine/outfits.ts'
import { JournalRecorder } from './recorder.ts'
import { resume } from './resumed.ts'
import { Surfaces } from './surfaces.ts'
import { Watchers } from './watchers.ts'

export interface GovernanceOptions {
  readonly settings: Pick<
    Settings,
    'servers' | 'profiles' | 'approval' | 'permit' | 'trust' | 'tools' | 'journal'
  >
  /** The journal's folder */
  readonly directory: string
  /** Outside of it */
  readonly keyPath: string
  /** Where it is kept since when the wall clock has stood, by which segments are old; outside of it, too */
  readonly clockPath: string
  /** Where a violation is kept that the journal does not take: files on disks that may fail independently */
  readonly owedPaths?: readonly string[]
  /** Where it is noted what the journal holds and should not: files on disks that may fail independently */
  readonly notes?: readonly string[]
  readonly daemon: DaemonId
  readonly emit: Emit
  readonly codeOf: (server: ServerSettings) => string
  readonly originOf: (server: ServerSettings) => string | null
  readonly ownerOf: (server: string) => string | null
  /** Whether a server is there, to stay: of others nothing is accepted any more */
  readonly stands: (server: string) => boolean
  /** Stops a server for all, and keeps it stopped */
  readonly halt: (server: string, reason: string) => Promise<void> | void
  /** What calls have begun, and what lasts, is looked at again: it may not go on by what holds from now on */
  readonly review: () => void
  readonly redactor: Redactor
  readonly separation: 'full' | 'none'
  /** Further folds of the journal, by the name that a snapshot gives them */
  readonly folds?: Readonly<Record<string, Foldable>>
  /** Leases for calls, and who was in flight when */
  readonly outfits: Pick<Outfits, 'foresee' | 'equip' | 'settle'>
  /** What persons told servers */
  readonly confided: Confided
}

/** What a daemon's folders had for it. */
interface Opened {
  readonly past: Past
  readonly keeping: Keeping
  readonly owed: OwedFile
  readonly health: Health
}

type Evidence = Readonly<Record<string, unknown>>

/** The ledger, the permits and the approvals of one daemon; whoever opened it disposes of it, after the servers. */
export class Governance implements AsyncDisposable {
  readonly ledger: Ledger
  readonly permits = new Permits(nowMs)
  readonly approvals: Approvals
  readonly surfaces: Surfaces
  readonly consequences: Consequences
  readonly recorder: JournalRecorder
  readonly governors: Governors
  readonly journal: Journal
  readonly #options: GovernanceOptions
  readonly #past: Past
  readonly #keeping: Keeping
  readonly #watchers = new Watchers()
  #listeners = 0

  private constructor(options: GovernanceOptions, { past, keeping, owed, health }: Opened) {
    const { settings, directory, emit, codeOf, stands, redactor, confided, separation } = options
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
      confided,
      separation,
      folded: (record) => {
        for (const fold of folds) fold.fold(record)
      },
    })
    this.approvals = new Approvals({
      limits: () => settings.approval,
      now: passedMs,
      listeners: () => this.#listeners,
      tell: (happening) => {
        tellOperators(happening, this.recorder, (...end) => this.consequences.ended(...end), emit)
        if (happening.kind === 'ended') options.review()
      },
    })
    const { ledger, permits, approvals, recorder } = this
    const watchers = this.#watchers
    this.consequences = new Consequences({ ...options, ledger, permits, approvals, recorder, owed })
    const add: Governance['add'] = (...fact) => this.add(...fact)
    this.surfaces = new Surfaces({
      ledger,
      add,
      emit,
      codeOf,
      stands,
      // What stood on another version of the declaration stands no more.
      accepted(server, version) {
        approvals.void(
          ({ identity }) => identity.startsWith(`${server}/`) && !identity.endsWith(`#${version}`),
        )
        watchers.tell(server)
      },
      replaced: (server) => this.#voidOf(server),
      differs: () => options.review(),
      toolLimit: () => settings.tools.perServer,
      profileOf: ({ profile }) => settings.profiles.get(profile) ?? null,
      consequences: this.consequences,
    })
    const { surfaces, consequences } = this
    const owing = health.of('outcomes')
    const parts = { ledger, permits, approvals, surfaces, recorder, owing, watchers, consequences }
    this.governors = new Governors({ ...options, ...parts })
  }

  /** Reads the journal and ends what it left open. Throws what `Keeping.open` throws. */
  static async open(options: GovernanceOptions): Promise<Governance> {
    const { settings, directory, keyPath, clockPath, owedPaths = [], notes = [] } = options
    const { daemon, emit, redactor, separation } = options
    const ledger = new Ledger(settings.trust)
    const past = new Past(ledger)
    const key = await loadKey(keyPath, directory)
    const health = new Health(emit)
    const warn = (...failure: Parameters<typeof notKept>): void => emit(notKept(...failure))
    const owed = new OwedFile({ paths: owedPaths, key, redactor, warn })
    const keeping = Keeping.open({
      directory,
      key,
      daemon,
      durability: settings.journal.durability,
      segmentBytes: settings.journal.segmentBytes,
      keepDays: settings.journal.keepDays,
      agesBy: () => timeThatStands(clockPath),
      notes,
      about: { separation },
      folds: { past, ...options.folds },
      record: (type, body) => governance.recorder.record(type, body),
      warn,
      health: health.of('journal'),
    })
    const governance = new Governance(options, { past, keeping, owed, health })
    const inherited = owed.read()
    await recordFindings(keeping, inherited, governance.recorder, emit)
    keeping.keepHead()
    await governance.consequences.inherit(inherited.debts)
    ledger.measure(settings.trust) // a snapshot's tiers are of the thresholds of its day
    await resume(past, governance)
    return governance
  }

  /** Halts what stands halted of these servers, or of all, once there is something that can be. */
  resume(servers: readonly string[] | null = null): void {
    for (const { server, reason } of this.ledger.quarantined())
      if (servers?.includes(server) ?? true) void this.#options.halt(server, reason)
  }

  /** Makes a fact durable, then true; further members are evidence. Nothing becomes of it where `still`, asked as it is written, says no. */
  async add({ type, body }: Fact, evidence: Evidence = {}, still = (): boolean => true): Promise<void> {
    await this.consequences.recorded()
    if (still()) await this.recorder.record(type, { ...body, ...evidence })
  }

  /** Of the approvals that outlived the last life those end whose server is gone, or under another policy; other code shows when it runs. */
  endReplaced(versionOf: (server: string) => string): void {
    this.approvals.void(
      ({ identity, policyVersion }) => policyVersion !== versionOf(identity.slice(0, identity.indexOf('/'))),
    )
  }

  /** Ends all permits of a server, and says which. */
  revoke(server: string): readonly string[] {
    return this.permits.revoke(({ binding }) => binding.identity.startsWith(`${server}/`))
  }

  /** Nothing of a server stands any more, from what its last calls came to on. Resolves with the permits that ended. */
  async remove(server: string, scope: RemovedBody['scope'], actor: Actor): Promise<readonly string[]> {
    this.#voidOf(server)
    const permits = this.revoke(server)
    await this.governors.settled()
    const fact: Fact = { type: 'server.removed', body: { server, by: actor.by, scope } }
    await this.surfaces.end([server], () => this.add(fact, { ...actor }))
    return permits
  }

  /** Nothing is accepted of these launched servers any more, on the word that `record` puts on record: both are there, or neither. */
  async removeWith(servers: readonly string[], actor: Actor, record: () => Promise<void>): Promise<void> {
    await this.governors.settled()
    await this.surfaces.end(servers, async () => {
      await this.consequences.recorded()
      // One batch, so in one turn.
      const removed = servers.map((server) =>
        this.recorder.record('server.removed', { server, scope: 'dynamic', ...actor }),
      )
      await Promise.all([record(), ...removed])
    })
  }

  /** Where the journal last says what the configuration came to. */
  readonly applied = (type: Parameters<Past['applied']>[0]): Applied | null => this.#past.applied(type)

  /** Other settings hold: permits and approvals of these servers, or with null of all, end; who waits for one is decided again. */
  reloaded(servers: ReadonlySet<string> | null): {
    readonly permits: readonly string[]
    readonly approvals: readonly string[]
  } {
    this.ledger.measure(this.#options.settings.trust)
    if (servers === null) this.#watchers.tellAll()
    const isOver = (identity: string): boolean =>
      servers?.has(identity.slice(0, identity.indexOf('/'))) ?? true
    return {
      permits: this.permits.revoke(({ binding }) => isOver(binding.identity)),
      approvals: this.approvals.void(({ identity }) => isOver(identity)),
    }
  }

  /** Number of the last record that the journal has let go of in this life; 0 where there is none. */
  get letGo(): number {
    return this.#keeping.letGo
  }

  /** Operator connections that listen for approvals. */
  get listeners(): number {
    return this.#listeners
  }

  /** An operator listens for approvals until the returned function is called; what waits then for nobody is denied. */
  listen(): () => void {
    this.#listeners += 1
    let isListening = true
    return () => {
      if (isListening) this.#listeners -= 1
      isListening = false
      if (this.#listeners === 0) this.approvals.leave()
    }
  }

  /** Whether a hold stands on all calls of the server, whatever is called. */
  isHeld(server: string): boolean {
    return this.ledger
      .holds()
      .some((hold) => hold.server === server && hold.tool === null && hold.lineage === null)
  }

  /** Digest over what runs as this server: program, package, arguments. */
  codeOf = (server: ServerSettings): string => this.#options.codeOf(server)

  /** The server did what its declaration or its grants do not cover (MP-FH-008). */
  async violateScope(server: string, detail: string): Promise<void> {
    await this.consequences.quarantine(server, 'MP-FH-008', detail)
  }

  #voidOf(server: string): void {
    this.approvals.void(({ identity }) => identity.startsWith(`${server}/`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.governors[Symbol.asyncDispose]()
    await this.consequences[Symbol.asyncDispose]()
    await this.recorder[Symbol.asyncDispose]()
    await this.#keeping[Symbol.asyncDispose]()
  }
}
