// What the journal adds up to: accepted surfaces, trust, quarantine and holds. Only recorded facts change it.
import type { InstanceId } from '../lib/ids.ts'
import type { Proposal } from '../schema/governor.ts'
import type { Standing } from './ports.ts'
import { type AcceptedSurface, type AcceptedTool, identityOf, type SurfaceChange } from './declaration.ts'
import {
  afterReset,
  afterSuccess,
  afterViolation,
  type TrustRecord,
  type TrustThresholds,
  unknownTool,
} from './trust.ts'

/** A fact, as the journal holds it; the daemon's tests hold writer and reader together. */
export type Fact =
  | { readonly type: 'surface.accepted'; readonly body: AcceptedBody }
  | { readonly type: 'surface.changed'; readonly body: ChangedBody }
  | { readonly type: 'call.outcome'; readonly body: OutcomeBody }
  | { readonly type: 'trust.violated'; readonly body: ViolationBody }
  | { readonly type: 'trust.reset'; readonly body: ResetBody }
  | { readonly type: 'server.quarantined'; readonly body: QuarantineBody }
  | { readonly type: 'server.released'; readonly body: { readonly server: string; readonly reason: string } }
  | { readonly type: 'server.removed'; readonly body: { readonly server: string; readonly by: string } }
  | { readonly type: 'hold.placed' | 'hold.released'; readonly body: HoldBody }

/** An accepted surface in its serialized form. */
export interface AcceptedBody extends Omit<AcceptedSurface, 'tools'> {
  readonly tools: readonly AcceptedTool[]
}

/** Changes that were told of: `tool` or `*` for all else -> digest of what it became. */
export interface ChangedBody {
  readonly server: string
  readonly became: Readonly<Record<string, string>>
}

export interface OutcomeBody {
  readonly server: string
  readonly kind: Proposal['kind']
  readonly subject: string
  readonly outcome: string
}

export interface QuarantineBody {
  readonly server: string
  /** MP-FH id */
  readonly failure: string
  readonly reason: string
}

export interface ViolationBody {
  readonly server: string
  readonly tool: string
  readonly at: string
  /** MP-FH id */
  readonly failure: string
  readonly detail: string
}

/** An operator's word that a tool begins anew. */
export interface ResetBody {
  readonly server: string
  readonly tool: string
  readonly reason: string
  readonly by: string
}

/** A named hold; null members match anything, and at least one does not. */
export interface HoldBody {
  readonly name: string
  readonly server: string | null
  readonly tool: string | null
  readonly lineage: string | null
}

/** What a running server lists at present, compared with what was accepted. */
export interface Live {
  readonly serverVersion: string
  readonly codeDigest: string
  readonly change: SurfaceChange
  /** Digests of the tools as they are listed now */
  readonly digests: Map<string, string>
  /** Digest of instructions, prompts and resource templates as they are listed now */
  readonly restDigest: string
}

const key = (server: string, tool: string): string => `${server}/${tool}`
const halts: Readonly<Record<string, 'ungoverned' | 'violated'>> = {
  'MP-FH-005': 'ungoverned',
  'MP-FH-008': 'violated',
}

export class Ledger {
  readonly #thresholds: TrustThresholds
  readonly #accepted = new Map<string, AcceptedSurface>()
  /** Latest declaration version ever, of servers that were removed too: no identity comes twice */
  readonly #versions = new Map<string, number>()
  readonly #live = new Map<InstanceId, Live>()
  readonly #told = new Map<string, string>()
  readonly #trust = new Map<string, TrustRecord>()
  readonly #quarantined = new Map<string, QuarantineBody>()
  readonly #holds = new Map<string, HoldBody>()

  constructor(thresholds: TrustThresholds) {
    this.#thresholds = thresholds
  }

  /** Folds one recorded fact in; the same facts in the same order give the same ledger. */
  apply(fact: Fact): void {
    switch (fact.type) {
      case 'surface.accepted':
        this.#accepted.set(fact.body.server, unfold(fact.body))
        this.#versions.set(fact.body.server, fact.body.declarationVersion)
        break
      case 'surface.changed':
        for (const [tool, digest] of Object.entries(fact.body.became))
          this.#told.set(key(fact.body.server, tool), digest)
        break
      case 'call.outcome':
        if (fact.body.outcome === 'result' && fact.body.kind === 'tool')
          this.#update(fact.body.server, fact.body.subject, (it) => afterSuccess(it, this.#thresholds))
        break
      case 'trust.violated':
        this.#update(fact.body.server, fact.body.tool, (record) => afterViolation(record, fact.body))
        break
      case 'trust.reset':
        this.#update(fact.body.server, fact.body.tool, afterReset)
        break
      case 'server.quarantined':
        this.#quarantined.set(fact.body.server, fact.body)
        break
      case 'server.released':
        this.#quarantined.delete(fact.body.server)
        break
      case 'server.removed':
        this.#accepted.delete(fact.body.server)
        break
      case 'hold.placed':
        this.#holds.set(fact.body.name, fact.body)
        break
      case 'hold.released':
        this.#holds.delete(fact.body.name)
        break
      default:
        fact satisfies never
    }
  }

  /** What was accepted for a server, or null. */
  accepted(server: string): AcceptedSurface | null {
    return this.#accepted.get(server) ?? null
  }

  /** The declaration version that the next acceptance of a server gets. */
  nextVersion(server: string): number {
    return (this.#versions.get(server) ?? 0) + 1
  }

  /** The servers of which something was accepted. */
  servers(): readonly string[] {
    return [...this.#accepted.keys()]
  }

  /** Notes what an instance lists; dies with the process, so it is no fact. */
  observe(instance: InstanceId, live: Live): void {
    this.#live.set(instance, live)
  }

  /** What an instance was seen to list, or null. */
  live(instance: InstanceId): Live | null {
    return this.#live.get(instance) ?? null
  }

  /** The instance is gone. */
  forget(instance: InstanceId): void {
    this.#live.delete(instance)
  }

  /** True when it was told before that the tool (or `*`) became just this. */
  isTold(server: string, tool: string, digest: string): boolean {
    return this.#told.get(key(server, tool)) === digest
  }

  /** Whether a tool, or for other methods the server, stands as it was accepted; by an instance, where one is named. */
  standing(server: string, instance: InstanceId | null, kind: Proposal['kind'], subject: string): Standing {
    const halt = this.#quarantined.get(server)
    if (halt !== undefined)
      return {
        state: halts[halt.failure] ?? 'unavailable',
        reason: `${server} is quarantined: ${halt.reason}; an operator lets it run again with sallyport release ${server}`,
      }
    const accepted = this.#accepted.get(server)
    const mend = `see sallyport accept ${server}`
    if (accepted === undefined)
      return { state: 'unaccepted', reason: `nothing of ${server} was accepted; ${mend}` }
    const live = instance === null ? null : this.live(instance)
    if (live === null && instance !== null)
      return { state: 'unaccepted', reason: `what ${server} lists is not known yet` }
    if (live !== null && !isSameServer(accepted, live))
      return {
        state: 'replaced',
        reason: `${server} is ${whatOf(live)}, accepted was ${whatOf(accepted)}; ${mend}`,
      }
    const identity = identityOf(accepted, subject)
    const { declarationVersion } = accepted
    if (kind === 'method') {
      if (live === null || live.restDigest === accepted.restDigest)
        return { state: 'accepted', identity, declarationVersion, tool: null }
      const what = 'the instructions, prompts or resource templates'
      return { state: 'changed', reason: `${what} of ${server} are not those that were accepted; ${mend}` }
    }
    const tool = accepted.tools.get(subject)
    if (tool === undefined) {
      if (live?.digests.has(subject) === true)
        return { state: 'unaccepted', reason: `${server} lists ${subject}, which was not accepted; ${mend}` }
      return { state: 'unknown', reason: `${server} has no tool of that name; see sallyport tools ${server}` }
    }
    if (live !== null && live.digests.get(subject) !== tool.surfaceDigest) {
      if (!live.digests.has(subject))
        return { state: 'unknown', reason: `${server} does not list ${subject} any more` }
      return {
        state: 'changed',
        reason: `${server} lists ${subject} otherwise than when it was accepted; ${mend}`,
      }
    }
    return { state: 'accepted', identity, declarationVersion, tool }
  }

  /** The record of a tool; the same object until something changes it. */
  trust(server: string, tool: string): TrustRecord {
    return this.#trust.get(key(server, tool)) ?? unknownTool
  }

  /** Every record that is not the first one. */
  trusts(): ReadonlyMap<string, TrustRecord> {
    return this.#trust
  }

  /** The servers that are halted, with why. */
  quarantined(): readonly QuarantineBody[] {
    return [...this.#quarantined.values()]
  }

  /** Name of a hold that covers the call, or null. */
  hold(server: string, tool: string, lineage: string | null): string | null {
    for (const hold of this.#holds.values()) {
      const covers =
        (hold.server ?? server) === server &&
        (hold.tool ?? tool) === tool &&
        (hold.lineage ?? lineage) === lineage
      if (covers) return hold.name
    }
    return null
  }

  /** The holds that stand. */
  holds(): readonly HoldBody[] {
    return [...this.#holds.values()]
  }

  #update(server: string, tool: string, change: (record: TrustRecord) => TrustRecord): void {
    this.#trust.set(key(server, tool), change(this.trust(server, tool)))
  }
}

/** True when version and code are those that were accepted. */
export const isSameServer = (
  accepted: Pick<AcceptedSurface, 'serverVersion' | 'codeDigest'>,
  live: Pick<Live, 'serverVersion' | 'codeDigest'>,
): boolean => accepted.serverVersion === live.serverVersion && accepted.codeDigest === live.codeDigest

const whatOf = ({ serverVersion, codeDigest }: Pick<Live, 'serverVersion' | 'codeDigest'>): string =>
  `version ${serverVersion} with code ${codeDigest.slice(0, 12)}`

const unfold = (body: AcceptedBody): AcceptedSurface => ({
  ...body,
  tools: new Map(body.tools.map((tool) => [tool.declaration.name, tool])),
})
