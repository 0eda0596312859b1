// What the journal adds up to: accepted surfaces, trust, quarantine and holds. Only recorded facts change it.
import type { Proposal, Standing } from './ports.ts'
import { type AcceptedSurface, type AcceptedTool, identityOf, type SurfaceChange } from './declaration.ts'
import { afterSuccess, afterViolation, type TrustRecord, type TrustThresholds, unknownTool } from './trust.ts'

/** A fact, as the journal holds it; the daemon's tests hold writer and reader together. */
export type Fact =
  | { readonly type: 'surface.accepted'; readonly body: AcceptedBody }
  | {
      readonly type: 'call.outcome'
      readonly body: { readonly server: string; readonly tool: string; readonly clean: boolean }
    }
  | { readonly type: 'trust.violated'; readonly body: ViolationBody }
  | {
      readonly type: 'server.quarantined' | 'server.released'
      readonly body: { readonly server: string; readonly reason: string }
    }
  | { readonly type: 'hold.placed' | 'hold.released'; readonly body: HoldBody }

/** An accepted surface in its serialized form. */
export interface AcceptedBody extends Omit<AcceptedSurface, 'tools'> {
  readonly tools: readonly AcceptedTool[]
}

export interface ViolationBody {
  readonly server: string
  readonly tool: string
  readonly at: string
  /** MP-FH id */
  readonly failure: string
  readonly detail: string
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
}

const key = (server: string, tool: string): string => `${server}/${tool}`
const nothing: ReadonlySet<string> = new Set()

export class Ledger {
  readonly #thresholds: TrustThresholds
  readonly #accepted = new Map<string, AcceptedSurface>()
  readonly #live = new Map<string, Live>()
  readonly #trust = new Map<string, TrustRecord>()
  readonly #quarantined = new Map<string, string>()
  readonly #holds = new Map<string, HoldBody>()

  constructor(thresholds: TrustThresholds) {
    this.#thresholds = thresholds
  }

  /** Folds one recorded fact in; the same facts in the same order give the same ledger. */
  apply(fact: Fact): void {
    switch (fact.type) {
      case 'surface.accepted':
        this.#accepted.set(fact.body.server, unfold(fact.body))
        break
      case 'call.outcome':
        if (fact.body.clean) this.#update(fact.body, (record) => afterSuccess(record, this.#thresholds))
        break
      case 'trust.violated':
        this.#update(fact.body, (record) => afterViolation(record, fact.body))
        break
      case 'server.quarantined':
        this.#quarantined.set(fact.body.server, fact.body.reason)
        break
      case 'server.released':
        this.#quarantined.delete(fact.body.server)
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

  /** Notes what a running server lists; dies with the process, so it is no fact. */
  observe(server: string, live: Live): void {
    this.#live.set(server, live)
  }

  /** Whether a tool, or for other methods the server, stands as it was accepted. */
  standing(server: string, kind: Proposal['kind'], subject: string): Standing {
    const reason = this.#quarantined.get(server)
    if (reason !== undefined) return { state: 'quarantined', reason: `${server} is quarantined: ${reason}` }
    const accepted = this.#accepted.get(server)
    if (accepted === undefined)
      return {
        state: 'unaccepted',
        reason: `nothing of ${server} was accepted; see sallyport declare ${server}`,
      }
    const live = this.#live.get(server)
    if (live !== undefined && !isSameServer(accepted, live))
      return {
        state: 'unaccepted',
        reason: `${server} is ${live.serverVersion} with code ${live.codeDigest.slice(0, 12)}, accepted was ${accepted.serverVersion} with ${accepted.codeDigest.slice(0, 12)}; accept it anew`,
      }
    const identity = identityOf(accepted, subject)
    const { declarationVersion } = accepted
    if (kind === 'method') return { state: 'accepted', identity, declarationVersion, tool: null }
    const tool = accepted.tools.get(subject)
    if (tool === undefined)
      return { state: 'undeclared', reason: `no declaration of ${server} names ${subject}` }
    const changed = live === undefined ? nothing : new Set(live.change.changed)
    if (changed.has(subject))
      return { state: 'changed', reason: `${server} lists ${subject} otherwise than when it was accepted` }
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

  /** Why a server is halted, or null. */
  quarantine(server: string): string | null {
    return this.#quarantined.get(server) ?? null
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

  #update(
    { server, tool }: { server: string; tool: string },
    change: (record: TrustRecord) => TrustRecord,
  ): void {
    this.#trust.set(key(server, tool), change(this.trust(server, tool)))
  }
}

const isSameServer = (accepted: AcceptedSurface, live: Live): boolean =>
  accepted.serverVersion === live.serverVersion && accepted.codeDigest === live.codeDigest

const unfold = (body: AcceptedBody): AcceptedSurface => ({
  ...body,
  tools: new Map(body.tools.map((tool) => [tool.declaration.name, tool])),
})
