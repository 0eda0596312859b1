// What the journal adds up to, while it is read and while it is written: one fold, so that a restart comes to the same.
import type { StandingApproval } from '../../call/standing-approval.ts'
import type { Fact, SavedLedger } from '../../call/facts.ts'
import type { Ledger } from '../../call/ledger.ts'
import { BriefMap } from '../../lib/brief-map.ts'
import type { Foldable } from './keeping.ts'
import type { Durable } from './recorder.ts'

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

type Body = Readonly<Record<string, unknown>>
type Stored = Omit<StandingApproval, 'expiresAt'> & {
  readonly granted_at: string
  readonly expires_at: string
}

/** What a snapshot keeps of the past. */
export interface SavedPast {
  readonly ledger: SavedLedger
  readonly open: readonly Body[]
  readonly standing: readonly Stored[]
  /** Digest of the last record of what the configuration says, by type */
  readonly applied: readonly (readonly [string, Applied])[]
  /** Time of the last record, ms since 1970; older snapshots do not say */
  readonly latest?: number
}

/** Where the journal last says what the configuration came to. */
export interface Applied {
  readonly seq: number
  readonly digest: string
}

/** A record: read back with its time, or as it is being written. */
type Told = Pick<Durable, 'type' | 'body' | 'seq'> & { readonly at?: string | null }

/** Folds records, in order; the journal vouches that they are the daemon's own. */
export class Past implements Foldable {
  readonly ledger: Ledger
  /** Calls with an intent and no end yet, by their id */
  readonly #open = new BriefMap<Body>()
  readonly #standing = new Map<string, Stored>()
  readonly #applied = new Map<string, Applied>()
  /** Time of the last record, as the wall clock said */
  #lastMs = 0

  constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  fold({ type, body, seq, at = null }: Told): void {
    const atMs = at === null ? Date.now() : Date.parse(at) // one that is only being written has the present time
    if (atMs < this.#lastMs) this.#putBack(this.#lastMs - atMs)
    this.#lastMs = atMs
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
        this.#standing.delete(String(said['id']))
        break
      case 'approval.ended':
        for (const id of said['ids'] as string[]) this.#standing.delete(id)
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
   * Approvals that outlive sessions, on the clock whose present is `now`. Where the wall clock has not come yet to what was
   * written last, they are `over`: it was put back, nobody knows how far, and what is left would be so much longer than what was
   * granted.
   */
  standing(now: number): {
    readonly standing: readonly StandingApproval[]
    readonly over: readonly string[]
  } {
    const wallNow = Date.now()
    if (wallNow < this.#lastMs) {
      const over = [...this.#standing.keys()]
      this.#standing.clear()
      return { standing: [], over }
    }
    const standing = [...this.#standing.values()]
      .filter(({ scope }) => scope === 'policy')
      .map(({ granted_at, expires_at, ...approval }) => ({
        ...approval,
        expiresAt: now + Date.parse(expires_at) - Math.max(wallNow, Date.parse(granted_at)),
      }))
      .filter(({ expiresAt }) => expiresAt > now)
    return { standing, over: [] }
  }

  /** Between two records the clock went back: to what is left of an approval that adds nothing, so it ends as much earlier by that clock. */
  #putBack(ms: number): void {
    const earlier = (time: string): string => new Date(Date.parse(time) - ms).toISOString()
    for (const [id, stored] of this.#standing) {
      const { granted_at, expires_at } = stored
      this.#standing.set(id, { ...stored, granted_at: earlier(granted_at), expires_at: earlier(expires_at) })
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
      applied: [...this.#applied],
      latest: this.#lastMs,
    }
  }

  /** Becomes what `save` gave, or with null what it is before any record. */
  load(saved: SavedPast | null): void {
    this.ledger.load(saved?.ledger ?? null)
    this.#open.clear()
    this.#standing.clear()
    this.#applied.clear()
    this.#lastMs = saved?.latest ?? 0
    for (const said of saved?.open ?? []) this.#open.set(String(said['call']), said)
    for (const stored of saved?.standing ?? []) this.#standing.set(stored.id, stored)
    for (const [type, last] of saved?.applied ?? []) this.#applied.set(type, last)
  }
}

/** What the outcome of a call says that its intent said. */
const unended = (
  { call, server, kind, subject, identity, principal, peer, permit, trust_epoch }: Body,
  intent: number,
): Body => ({ call, server, kind, subject, identity, principal, peer, intent, permit, trust_epoch })
