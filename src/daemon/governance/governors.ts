// What stands before every server: the ten steps with this daemon's ledger, permits, approvals and journal behind them.
import { Abouts } from '../../call/about.ts'
import type { Approvals } from '../../call/approve.ts'
import { govern } from '../../call/govern.ts'
import type { Ledger } from '../../call/ledger.ts'
import type { Permits } from '../../call/permit.ts'
import type { GovernPorts, Intent, Told } from '../../call/ports.ts'
import { isProvisional } from '../../call/trust.ts'
import { noTurn, Turns } from '../../call/turns.ts'
import { uncontained } from '../../config/containment.ts'
import type { Confided } from '../../credentials/confided.ts'
import { SallyportError } from '../../errors.ts'
import type { CallId, InstanceId } from '../../lib/ids.ts'
import { Together } from '../../lib/together.ts'
import type { Gate } from '../../schema/gate.ts'
import type {
  Admission,
  Asker,
  Governor,
  Observation,
  Outcome,
  Proposal,
  Waiting,
} from '../../schema/governor.ts'
import type { ServerSettings, Settings } from '../../schema/settings.ts'
import type { Emit } from '../../supervisor/ports.ts'
import { ArgumentSchemas } from './argument-schemas.ts'
import { confirm } from './confirm.ts'
import type { Consequences } from './consequences.ts'
import { event, tellRefusal } from './failure-events.ts'
import type { Tell } from './health.ts'
import { lasts } from './lasting.ts'
import { unlikeDeclared } from './off-schema.ts'
import { Outcomes } from './outcomes.ts'
import type { Outfits } from '../machine/outfits.ts'
import type { JournalRecorder } from './recorder.ts'
import { digestOfTool, unreadableDigest, toolName } from './seen.ts'
import type { Surfaces } from './surfaces.ts'
import { validate } from './validate.ts'
import type { Watchers } from './watchers.ts'

/** What calls are judged by, and where their records go. */
export interface GovernorParts {
  readonly settings: Pick<Settings, 'servers' | 'profiles' | 'permit'>
  readonly ledger: Ledger
  readonly permits: Permits
  readonly approvals: Approvals
  readonly surfaces: Surfaces
  readonly recorder: JournalRecorder
  readonly emit: Emit
  /** Told when outcomes can't be recorded, and nothing is called therefore, and when they are */
  readonly owing: Tell
  /** Leases for calls, and who was in flight when */
  readonly outfits: Pick<Outfits, 'foresee' | 'equip' | 'settle'>
  readonly confided: Pick<Confided, 'add'>
  readonly watchers: Pick<Watchers, 'add'>
  readonly consequences: Pick<Consequences, 'areOwed' | 'recorded' | 'subscriptionEnded'>
}

/** What decides about calls. */
interface Decider {
  readonly gate: Gate
  readonly versionOf: (server: string) => string
}

/** What an instance lists is being looked at. */
interface Look {
  readonly instance: InstanceId
  /** It was let go of meanwhile */
  isGone: boolean
}

/** The governors of one daemon, one for each policy; whoever made it disposes of it, after the servers. */
export class Governors implements AsyncDisposable {
  readonly #parts: GovernorParts
  readonly #schemas = new ArgumentSchemas()
  readonly #outcomes: Outcomes
  readonly #recording = new Together()
  readonly #turns = new Turns()
  /** Looks at what instances list that are not over yet */
  readonly #looks = new Set<Look>()
  /** Calls that were refused after they were admitted, until they are settled */
  readonly #refused = new Set<CallId>()

  constructor(parts: GovernorParts) {
    this.#parts = parts
    this.#outcomes = new Outcomes(parts.recorder, parts.owing)
  }

  /** The governor under a policy; `versionOf` tells what decides about a server's calls from what did before. */
  under({ gate, versionOf }: Decider): Governor {
    const { settings, ledger, permits, approvals, surfaces, recorder, outfits, emit } = this.#parts
    const { confided, watchers } = this.#parts
    const ports: GovernPorts = {
      policyVersion: versionOf,
      decide: (request, trust) => gate.decide(request, isProvisional(trust)),
      registry: {
        standing: (...args) => ledger.standing(...args),
        trust: (...args) => ledger.trust(...args),
        hold: (...args) => ledger.hold(...args),
        uncontained: (server, effects, scopes) => this.uncontained(server, effects, scopes),
        invalidArguments: (server, tool, args, text, principal) =>
          this.invalidArguments(server, tool, args, text, principal),
      },
      approver: approvals,
      permits,
      // A call's own process comes up between its permit and its dispatch.
      permitTtlMs: (name) => {
        const server = settings.servers.get(name)
        return settings.permit.ttlMs + (server?.instance === 'call' ? server.timeouts.initializeMs : 0)
      },
      recorder: {
        record: (...args) => recorder.record(...args),
        intent: (...args) => this.#recording.add(() => this.#recordIntent(...args)),
        outcome: (...args) => recorder.outcome(...args),
      },
      abouts: new Abouts(),
      foresee: (ask) => outfits.foresee(ask),
      equip: (ask, waiting) => outfits.equip(ask, waiting),
      turns: {
        take: (proposal) => {
          const server = settings.servers.get(proposal.server.name)
          return server === undefined ? noTurn : this.#turns.take(server, proposal)
        },
        wait: (proposal, waiting, asker) => {
          const server = settings.servers.get(proposal.server.name)
          if (server === undefined) asker.given(noTurn)
          else this.#turns.wait(server, proposal, waiting, asker)
        },
      },
      owed: () => (this.#isOwing ? this.#paid() : null),
      owe: (ended) => this.#outcomes.add(ended),
      refuse: (proposal, error) => tellRefusal(proposal, error, emit),
    }
    const decide: Governor['decide'] = (request) =>
      gate.decide(request, isProvisional(ledger.trust(request.server.name, request.subject)))
    return {
      admit: (proposal, waiting) =>
        new Promise((admitted, refused) => this.#govern(proposal, ports, waiting, { admitted, refused })),
      admitTo: (proposal, waiting, asker) => this.#govern(proposal, ports, waiting, asker),
      confirm: (admission) => {
        const error = confirm(this.#parts, versionOf, admission) ?? (this.#isOwing ? notRecorded() : null)
        return error === null ? null : this.#refuse(admission, error)
      },
      refuse: (admission, error) => this.#refuse(admission, error),
      settle: (admission, outcome) => this.#settle(admission, outcome),
      observe: (seen) => this.#observe(seen),
      validate: (seen) => validate(ledger, seen),
      decide,
      lasts: (admission, request) =>
        lasts(this.#parts, admission, decide(request), versionOf(admission.server)),
      shows: (server, instance, tool) => this.#shows(server, instance, tool),
      offers: (server, instance, method) =>
        ledger.standing(server.name, instance, 'method', method).state === 'accepted',
      introduces: (...introduced) => surfaces.introductions.passes(...introduced),
      watch: (...watch) => watchers.add(...watch),
      confide: (...told) => confided.add(...told),
      forget: (instance) => {
        for (const look of this.#looks) if (look.instance === instance) look.isGone = true
        ledger.forget(instance)
        surfaces.introductions.forget(instance)
        approvals.endSession(instance) // a control call's session is its instance
      },
    }
  }

  /** Null, or where and why the arguments, whose JSON is `text`, are not what the accepted schema says. */
  invalidArguments(
    server: string,
    name: string,
    args: unknown,
    text: string,
    principal: string,
  ): Promise<string | null> | string | null {
    const accepted = this.#parts.ledger.accepted(server)
    const tool = accepted?.tools.get(name)
    if (accepted === null || tool === undefined) return null
    const owner = { server, acceptance: accepted.declarationVersion, principal }
    return this.#schemas.judge(owner, tool, args, text)
  }

  /** What of these a server's sandbox does not contain, or null. */
  uncontained(name: string, effects: readonly string[], scopes: readonly string[]): string | null {
    const { servers, profiles } = this.#parts.settings
    const server = servers.get(name)
    if (server === undefined) return effects.length + scopes.length > 0 ? `there is no server ${name}` : null
    return uncontained(server, profiles.get(server.profile) ?? null, effects, scopes)
  }

  /** Resolves when every outcome so far is in the journal, or can't be. */
  settled(): Promise<void> {
    return this.#outcomes.settled()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#recording.now()
    this.#outcomes.close()
    await this.#schemas[Symbol.asyncDispose]()
  }

  /** What it lists may be why an instance ends: then nothing is known of it any more once it was looked at. */
  async #observe(seen: Observation): Promise<void> {
    const look = { instance: seen.instance, isGone: false }
    this.#looks.add(look)
    try {
      await this.#parts.surfaces.observe(seen)
    } finally {
      this.#looks.delete(look)
      if (look.isGone) this.#parts.ledger.forget(seen.instance)
    }
  }

  /** What could not be recorded of outcomes, and of what was taken away, comes before anything is called. */
  #govern(proposal: Proposal, ports: GovernPorts, waiting: Waiting, asker: Asker): void {
    if (!this.#isOwing) return govern(proposal, ports, waiting, asker)
    void this.#pay().then((failure) => {
      const obstacle = failure ?? proposal.obstacle
      return govern({ ...proposal, obstacle }, ports, waiting, asker)
    })
  }

  get #isOwing(): boolean {
    return this.#outcomes.areOwed || this.#parts.consequences.areOwed
  }

  async #paid(): Promise<void> {
    const failure = await this.#pay()
    if (failure !== null) throw failure
  }

  async #pay(): Promise<SallyportError | null> {
    try {
      await this.#parts.consequences.recorded()
    } catch (thrown) {
      return SallyportError.from(thrown)
    }
    return this.#outcomes.areOwed ? this.#outcomes.pay() : null
  }

  /** What ended before is on record before it, in the same batch. */
  #recordIntent(intent: Intent, told: Told): void {
    try {
      this.#outcomes.record()
      this.#parts.recorder.intent(intent, told)
    } catch (error) {
      told.failed(SallyportError.from(error))
    }
  }

  #refuse(admission: Admission, error: SallyportError): Promise<SallyportError> {
    const told = admission.refuse?.(error)
    if (told !== undefined) this.#refused.add(admission.call)
    return told ?? Promise.resolve(error)
  }

  #settle(admission: Admission, outcome: Outcome): boolean {
    const { permits, outfits, emit, ledger } = this.#parts
    const { server, subject, principal, call } = admission
    try {
      if (admission.refuse !== null) permits.end({ id: admission.permit }) // it may never have been dispatched
      // At once: whatever becomes of the record, the call's secrets end with the call.
      const used = outfits.settle(admission)
      if (this.#refused.size > 0 && this.#refused.delete(call)) return false
      if (outcome.kind === 'timeout') {
        const detail = { call, tool: subject, failure: 'MP-FH-004', reason: outcome.detail }
        emit(event('call/timeout', server, detail, principal))
      }
      if (this.#isPlain(admission, outcome)) this.#outcomes.putOff({ admission, outcome, used })
      else this.#outcomes.add({ admission, outcome, used, ...unlikeDeclared(ledger, admission, outcome) })
      return true
    } finally {
      admission.turn.end()
    }
  }

  /** A result of a tool that has earned all the trust there is: nobody decides otherwise for it. */
  #isPlain({ server, kind, subject }: Admission, { kind: end }: Outcome): boolean {
    return end === 'result' && kind === 'tool' && this.#parts.ledger.trust(server, subject).tier === 'trusted'
  }

  #shows(server: ServerSettings, instance: Parameters<Governor['shows']>[1], tool: unknown): boolean {
    const { ledger, surfaces } = this.#parts
    const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : null
    if (typeof name !== 'string') return false
    const standing = ledger.standing(server.name, instance, 'tool', name)
    if (standing.state === 'unknown' && instance !== null && toolName.test(name))
      surfaces.strays(server, instance, name)
    if (standing.state !== 'accepted' || standing.tool === null) return false
    const digest = digestOfTool(tool)
    if (digest === standing.tool.surfaceDigest) return true
    if (instance !== null) surfaces.deviates(server.name, instance, name, digest ?? unreadableDigest)
    return false
  }
}

const notRecorded = (): SallyportError =>
  new SallyportError('ERR_JOURNAL', 'what came of an earlier call is not on record yet; call again')
