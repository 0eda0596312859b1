// What an earlier life of the daemon left in the journal: facts for the ledger, calls without an end, approvals that stand.
import type { StandingApproval } from '../call/approve.ts'
import type { Fact, Ledger } from '../call/ledger.ts'
import type { JournalRecord } from '../journal/record.ts'

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
type Stored = Omit<StandingApproval, 'expiresAt'> & { readonly expires_at: string }

/** Folds records, in order; the journal vouches that they are the daemon's own. */
export class Past {
  readonly #ledger: Ledger
  readonly #open = new Map<unknown, Body>()
  readonly #standing = new Map<string, Stored>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  fold({ type, body, seq }: JournalRecord): void {
    if (factTypes.has(type)) this.#ledger.apply({ type, body } as Fact)
    const said = body as Body
    if (type === 'call.intent') this.#open.set(said['call'], { ...said, intent: seq })
    else if (type === 'call.outcome' || type === 'call.denied') this.#open.delete(said['call'])
    else if (type === 'approval.standing') this.#standing.set(String(said['id']), body as Stored)
    else if (type === 'approval.ended') for (const id of said['ids'] as string[]) this.#standing.delete(id)
  }

  /** An outcome for every call that has an intent and no end: nobody knows what the server did. */
  unfinished(): readonly Body[] {
    return [...this.#open.values()].map(({ call, server, kind, subject, identity, permit, intent }) => ({
      call,
      server,
      kind,
      subject,
      identity,
      intent,
      permit,
      outcome: 'unknown',
      duration_ms: null,
      detail: 'the daemon ended before the call did',
    }))
  }

  /** Approvals that outlive sessions, on the clock whose present is `now`. */
  standing(now: number): readonly StandingApproval[] {
    return [...this.#standing.values()]
      .filter(({ scope }) => scope === 'policy')
      .map(({ expires_at, ...approval }) => ({
        ...approval,
        expiresAt: now + Date.parse(expires_at) - Date.now(),
      }))
      .filter(({ expiresAt }) => expiresAt > now)
  }
}
