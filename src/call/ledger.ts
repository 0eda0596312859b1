// What the journal adds up to: accepted surfaces, trust, quarantine and holds. Only recorded facts change it.
import type { InstanceId } from '../lib/ids.ts'
import type { Proposal } from '../schema/governor.ts'
import { Ahead } from './ahead.ts'
import {
  type AcceptedBody,
  type Fact,
  haltOf,
  type HoldBody,
  holdOf,
  isEvidence,
  type QuarantineBody,
  type SavedLedger,
  type StrictFact,
  unfold,
  violationOf,
} from './facts.ts'
import type { Standing } from './ports.ts'
import type { AcceptedSurface } from './declaration.ts'
import { isSameServer, type Live } from './live.ts'
import { Standings } from './standings.ts'
import { toolKey as key } from './tool-key.ts'
import {
  afterReplacement,
  afterReset,
  afterSuccess,
  afterViolation,
  measured,
  type TrustRecord,
  type TrustThresholds,
  unknownTool,
} from './trust.ts'

const halts: Readonly<Record<string, 'ungoverned' | 'violated'>> = {
  'MP-FH-005': 'ungoverned',
  'MP-FH-008': 'violated',
}

export class Ledger {
  #thresholds: TrustThresholds
  readonly #accepted = new Map<string, AcceptedSurface>()
  /** Latest declaration version ever, of servers that were removed too: no identity comes twice */
  readonly #versions = new Map<string, number>()
  /** Latest declaration version of the servers of which nothing is known any more */
  #forgotten = 0
  readonly #standings = new Standings()
  readonly #live = new Map<InstanceId, Live>()
  readonly #told = new Map<string, string>()
  readonly #trust = new Map<string, TrustRecord>()
  readonly #quarantined = new Map<string, QuarantineBody>()
  readonly #holds = new Map<string, HoldBody>()
  /** Facts that have effect already and are not durable yet */
  readonly #ahead = new Ahead()

  constructor(thresholds: TrustThresholds) {
    this.#thresholds = thresholds
  }

  /** Measures what every tool has earned by these thresholds, now and from now on. */
  measure(thresholds: TrustThresholds): void {
    this.#thresholds = thresholds
    for (const [name, record] of this.#trust) this.#trust.set(name, measured(record, thresholds))
  }

  /** Folds one recorded fact in; the same facts in the same order give the same ledger. */
  apply(fact: Fact): void {
    switch (fact.type) {
      case 'surface.accepted':
        this.#renew(this.accepted(fact.body.server), fact.body)
        this.#accepted.set(fact.body.server, unfold(fact.body))
        this.#versions.set(fact.body.server, fact.body.declarationVersion)
        break
      case 'surface.changed':
        for (const [tool, digest] of Object.entries(this.knows(fact.body.server) ? fact.body.became : {}))
          this.#told.set(key(fact.body.server, tool), digest)
        break
      case 'call.outcome':
        if (fact.body.outcome === 'result' && fact.body.kind === 'tool')
          this.#update(fact.body.server, fact.body.subject, (it) =>
            isEvidence(fact.body, it, this.accepted(fact.body.server), this.#standings)
              ? afterSuccess(it, this.#thresholds)
              : it,
          )
        break
      case 'trust.violated':
        this.#update(fact.body.server, fact.body.tool, (it) => afterViolation(it, violationOf(fact.body)))
        break
      case 'trust.reset':
        this.#update(fact.body.server, fact.body.tool, afterReset)
        break
      case 'server.quarantined':
        this.#quarantined.set(fact.body.server, haltOf(fact.body, this.#quarantined.get(fact.body.server)))
        break
      case 'server.released':
        this.#quarantined.delete(fact.body.server)
        this.#ahead.released(fact.body.server)
        break
      case 'server.removed':
        this.#accepted.delete(fact.body.server)
        if (fact.body.scope === 'dynamic') this.#forget(fact.body.server)
        else this.#replace(fact.body.server)
        break
      case 'hold.placed':
        this.#holds.set(fact.body.name, holdOf(fact.body))
        break
      case 'hold.released':
        this.#holds.delete(fact.body.name)
        break
      default:
        fact satisfies never
    }
  }

  /** Lets a fact have effect before it is durable; what it ends stays ended until `arrived` says that it was applied. */
  anticipate = (fact: StrictFact): void => this.#ahead.add(fact)

  /** A fact that had effect ahead of its record is applied now. */
  arrived = (fact: StrictFact): void => this.#ahead.delete(fact)

  /** What was accepted for a server, or null. */
  accepted(server: string): AcceptedSurface | null {
    return this.#accepted.get(server) ?? null
  }

  /** The declaration version that the next acceptance of a server gets. */
  nextVersion(server: string): number {
    return (this.#versions.get(server) ?? this.#forgotten) + 1
  }

  /** Whether anything of a server was ever accepted: also of one that is gone, unless a host had launched it. */
  knows(server: string): boolean {
    return this.#versions.has(server)
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

  /** Digest of what it was last told that the tool (or `*`) is, against what was accepted; null where nothing was. */
  told(server: string, tool: string): string | null {
    return this.#told.get(key(server, tool)) ?? null
  }

  /** Whether a tool, or for other methods the server, stands as it was accepted; by an instance, where one is named. */
  standing(server: string, instance: InstanceId | null, kind: Proposal['kind'], subject: string): Standing {
    const halt = this.quarantine(server)
    if (halt !== null)
      return {
        state: halts[halt.failure] ?? 'unavailable',
        reason: `${server} is quarantined: ${halt.reason}; an operator lets it run again with sallyport release ${server}`,
      }
    const accepted = this.#accepted.get(server)
    if (accepted === undefined)
      return {
        state: 'unaccepted',
        reason: `nothing of ${server} was accepted; see sallyport accept ${server}`,
      }
    const live = instance === null ? null : this.live(instance)
    if (live === null && instance !== null)
      return { state: 'unaccepted', reason: `what ${server} lists is not known yet` }
    return this.#standings.of(accepted, live, kind, subject)
  }

  /** The record of a tool; the same object until something changes it. */
  trust(server: string, tool: string): TrustRecord {
    return this.#ahead.trust(this.#trust.get(key(server, tool)) ?? unknownTool, server, tool)
  }

  /** Why a server is halted, or null. */
  quarantine(server: string): QuarantineBody | null {
    if (this.#ahead.isEmpty && this.#quarantined.size === 0) return null
    return this.quarantined().find((one) => one.server === server) ?? null
  }

  /** As `Ahead.lastHalt`. */
  lastHalt = (server: string): object | null => this.#ahead.lastHalt(server)

  /** Every record that is not the first one. */
  trusts(): ReadonlyMap<string, TrustRecord> {
    return this.#trust
  }

  /** The servers that are halted, with why. */
  quarantined(): readonly QuarantineBody[] {
    return [...this.#quarantined.values(), ...this.#ahead.quarantined()]
  }

  /** Name of a hold that covers the call, or null. */
  hold(server: string, tool: string, lineage: string | null): string | null {
    for (const hold of this.#ahead.isEmpty ? this.#holds.values() : this.holds()) {
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
    const ahead = this.#ahead.holds().map((hold) => [hold.name, hold] as const)
    return [...new Map([...this.#holds, ...ahead]).values()]
  }

  /** All that facts have made of it, as JSON. */
  save(): SavedLedger {
    return {
      accepted: [...this.#accepted.values()].map((surface) => ({
        ...surface,
        tools: [...surface.tools.values()],
      })),
      versions: [...this.#versions],
      forgotten: this.#forgotten,
      told: [...this.#told],
      trust: [...this.#trust],
      quarantined: [...this.#quarantined.values()],
      holds: [...this.#holds.values()],
    }
  }

  /** Becomes what `save` gave, or with null what it is before any fact. */
  load(saved: SavedLedger | null): void {
    fill(
      this.#accepted,
      saved?.accepted.map((body) => [body.server, unfold(body)]),
    )
    fill(this.#versions, saved?.versions)
    this.#forgotten = saved?.forgotten ?? 0
    fill(this.#told, saved?.told)
    fill(this.#trust, saved?.trust)
    fill(
      this.#quarantined,
      saved?.quarantined.map((body) => [body.server, body]),
    )
    fill(
      this.#holds,
      saved?.holds.map((hold) => [hold.name, hold]),
    )
  }

  /** What is accepted otherwise than it was, or anew, has earned nothing under its name. */
  #renew(before: AcceptedSurface | null, now: AcceptedBody): void {
    if (before === null) return
    if (!isSameServer(before, now)) return this.#replace(now.server)
    if (now.renews !== true) return
    for (const { declaration, surfaceDigest } of now.tools) {
      const name = key(now.server, declaration.name)
      const record = this.#trust.get(name)
      const isSame = before.tools.get(declaration.name)?.surfaceDigest === surfaceDigest
      if (record !== undefined && !isSame) this.#trust.set(name, afterReplacement(record))
    }
  }

  /** What has a server's name from now on has done nothing yet, neither good nor bad. */
  #replace(server: string): void {
    for (const [name, record] of this.#trust)
      if (isOf(server, name)) this.#trust.set(name, afterReplacement(record))
    for (const name of this.#told.keys()) if (isOf(server, name)) this.#told.delete(name)
  }

  /** Hosts may launch under ever new names: nothing of them is kept, but that no identity comes twice. */
  #forget(server: string): void {
    for (const known of [this.#trust, this.#told])
      for (const name of known.keys()) if (isOf(server, name)) known.delete(name)
    this.#forgotten = Math.max(this.#forgotten, this.#versions.get(server) ?? 0)
    this.#versions.delete(server)
  }

  /** What comes late of a server of which nothing is known any more begins no record anew. */
  #update(server: string, tool: string, change: (record: TrustRecord) => TrustRecord): void {
    if (!this.knows(server)) return
    const name = key(server, tool)
    this.#trust.set(name, change(this.#trust.get(name) ?? unknownTool))
  }
}

const isOf = (server: string, name: string): boolean => name.startsWith(`${server}/`)

function fill<K, V>(map: Map<K, V>, entries: readonly (readonly [K, V])[] = []): void {
  map.clear()
  for (const [name, value] of entries) map.set(name, value)
}
