// What the journal adds up to, while it is read and while it is written: one fold, so that a restart comes to the same.
import type { StandingApproval } from '../../call/standing-approval.ts'
import type { Fact, SavedLedger } from '../../call/facts.ts'
import type { Ledger } from '../../call/ledger.ts'
import { BriefMap, oursAlone } from '../../lib/brief-map.ts'
import type { Foldable } from './keeping.ts'
import type { Durable } from './recorder.ts'
import type { Stored } from './verbatim.ts'

const factTypes: ReadonlySet<string> = new Set<Fact['type']>([
  'surface.accepted',
  'surface.changed',
  'call.outcome',
  'trust.violated',
  'trust.reset',
  'server.quarantined',
  'server.released',
  'server.removed',
  'hold.placed',
  'hold.released',
])

/** By how much a wall clock that is only adjusted may be behind the last record, ms: what stands may outlive its time by as much */
const mostSlack = 1000

type Body = Readonly<Record<string, unknown>>

/** What a snapshot keeps of the past. */
export interface SavedPast {
  readonly ledger: SavedLedger
  readonly open: readonly Body[]
  readonly standing: readonly Stored[]
  /** Ids of what stood when the clock went back; older snapshots do not say */
  readonly over?: readonly string[]
  /** Digest of the last record of what the configuration says, by type */
  readonly applied: readonly (readonly [string, Applied])[]
  /** Latest time of any record since the clock last went back, ms since 1970; older snapshots do not say */
  readonly latest?: number
}

/** Where the journal last says what the configuration came to. */
export interface Applied {
  readonly seq: number
  readonly digest: string
}

/** A record: read back with its time, or as it is being written. */
type Told = Durable & { readonly at?: string | null }

/** Folds records, in order; the journal vouches that they are the daemon's own. */
export class Past implements Foldable {
  readonly ledger: Ledger
  /** Calls with an intent and no end yet, by their id */
  readonly #open = new BriefMap<Body>(oursAlone)
  readonly #standing = new Map<string, Stored>()
  /** Approvals of which nobody knows how much of their time is left, until their end is recorded */
  readonly #over = new Set<string>()
  readonly #applied = new Map<string, Applied>()
  /** Latest time of any record since the wall clock last went back, as it said */
  #lastMs = 0

  constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  fold({ type, body, seq, at = null, atMs = at === null ? Date.now() : Date.parse(at) }: Told): void {
    if (atMs < this.#lastMs - mostSlack) this.#putBack(atMs)
    else if (atMs > this.#lastMs) this.#lastMs = atMs
    if (factTypes.has(type)) this.ledger.apply({ type, body } as Fact)
    const said = body as Body
    switch (type) {
      case 'call.intent':
        this.#open.set(String(said['call']), unended(said, seq))
        break
      case 'call.outcome':
      case 'call.denied':
        this.#open.delete(String(said['call']))
        break
      case 'approval.standing':
        this.#forgetExpired()
        this.#standing.set(String(said['id']), body as Stored)
        break
      case 'approval.revoked':
        this.#forget([String(said['id'])])
        break
      case 'approval.ended':
        this.#forget(said['ids'] as string[])
        break
      case 'server.quarantined':
        if (String(said['failure']).startsWith('MP-FH-')) this.#endApprovals(String(said['server']))
        break
      case 'config.applied':
      case 'dynamic.applied':
        this.#applied.set(type, { seq, digest: String(said['digest']) })
    }
  }

  /** The last record of that type, or null. */
  applied(type: 'config.applied' | 'dynamic.applied'): Applied | null {
    return this.#applied.get(type) ?? null
  }

  /** An outcome for every call that has an intent and no end: nobody knows what the server did. */
  unfinished(): readonly Body[] {
    return this.#open.values().map((said) => ({
      ...said,
      outcome: 'unknown',
      duration_ms: null,
      detail: 'the daemon ended before the call did',
    }))
  }

  /**
   * Approvals that outlive sessions, on the clock whose present is `now`. Where the wall clock is behind what was
   * written last by more than it is adjusted by, they are `over`: it was put back, nobody knows how far, and what is
   * left would be so much longer than what was granted.
   */
  standing(now: number): {
    readonly standing: readonly StandingApproval[]
    readonly over: readonly string[]
  } {
    const wallNow = Date.now()
    if (wallNow < this.#lastMs - mostSlack) this.#putBack(wallNow)
    const over = [...this.#over]
    this.#over.clear()
    const standing = [...this.#standing.values()]
      .filter(({ scope }) => scope === 'policy')
      .map(({ granted_at, expires_at, ...approval }) => ({
        ...approval,
        expiresAt: now + Date.parse(expires_at) - Math.max(wallNow, Date.parse(granted_at)),
      }))
      .filter(({ expiresAt }) => expiresAt > now)
    return { standing, over }
  }

  /** Between two records the clock went back, and nobody knows how much time has passed: a restart takes up nothing that stood then. */
  #putBack(atMs: number): void {
    this.#lastMs = atMs
    for (const id of this.#standing.keys()) this.#over.add(id)
    this.#standing.clear()
  }

  #forget(ids: readonly string[]): void {
    for (const id of ids) {
      this.#standing.delete(id)
      this.#over.delete(id)
    }
  }

  /** Nobody tells that the time of an approval was over. */
  #forgetExpired(): void {
    const now = Date.now()
    for (const [id, { expires_at }] of this.#standing)
      if (Date.parse(expires_at) <= now) this.#standing.delete(id)
  }

  /** What a server did took along every approval of it. */
  #endApprovals(server: string): void {
    for (const [id, { identity }] of this.#standing)
      if (identity.startsWith(`${server}/`)) this.#standing.delete(id)
  }

  /** All of it, as JSON. */
  save(): SavedPast {
    this.#forgetExpired()
    return {
      ledger: this.ledger.save(),
      open: this.#open.values(),
      standing: [...this.#standing.values()],
      over: [...this.#over],
      applied: [...this.#applied],
      latest: this.#lastMs,
    }
  }

  /** Becomes what `save` gave, or with null what it is before any record. */
  load(saved: SavedPast | null): void {
    this.ledger.load(saved?.ledger ?? null)
    this.#open.clear()
    this.#standing.clear()
    this.#over.clear()
    this.#applied.clear()
    this.#lastMs = saved?.latest ?? 0
    for (const said of saved?.open ?? []) this.#open.set(String(said['call']), said)
    for (const stored of saved?.standing ?? []) this.#standing.set(stored.id, stored)
    for (const id of saved?.over ?? []) this.#over.add(id)
    for (const [type, last] of saved?.applied ?? []) this.#applied.set(type, last)
  }
}

/** What the outcome of a call says that its intent said. */
const unended = (
  { call, server, kind, subject, identity, principal, peer, permit, trust_epoch }: Body,
  intent: number,
): Body => ({ call, server, kind, subject, identity, principal, peer, intent, permit, trust_epoch })
