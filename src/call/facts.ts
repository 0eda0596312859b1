// The facts that a ledger is made of, as the journal holds them; only these change what may be called.
import type { Proposal } from '../schema/governor.ts'
import { type AcceptedSurface, type AcceptedTool } from './declaration.ts'
import type { TrustRecord, Violation } from './trust.ts'

/** A fact, as the journal holds it; the daemon's tests hold writer and reader together. */
export type Fact =
  | { readonly type: 'surface.accepted'; readonly body: AcceptedBody }
  | { readonly type: 'surface.changed'; readonly body: ChangedBody }
  | { readonly type: 'call.outcome'; readonly body: OutcomeBody }
  | { readonly type: 'trust.violated'; readonly body: ViolationBody }
  | { readonly type: 'trust.reset'; readonly body: ResetBody }
  | { readonly type: 'server.quarantined'; readonly body: QuarantineBody }
  | { readonly type: 'server.released'; readonly body: { readonly server: string; readonly reason: string } }
  | { readonly type: 'server.removed'; readonly body: RemovedBody }
  | { readonly type: 'hold.placed'; readonly body: HoldBody }
  | { readonly type: 'hold.released'; readonly body: HoldBody }

/** What takes away: that may have effect before it is durable. */
export type StrictFact = Extract<
  Fact,
  { readonly type: 'trust.violated' | 'trust.reset' | 'server.quarantined' | 'hold.placed' }
>

/** An accepted surface in its serialized form. */
export interface AcceptedBody extends Omit<
  AcceptedSurface,
  'tools' | 'instructionsDigest' | 'saidVersion' | 'unread'
> {
  readonly tools: readonly AcceptedTool[]
  /** Older records have none of these */
  readonly instructionsDigest?: string | null
  readonly saidVersion?: string | null
  readonly unread?: readonly string[] | null
  /** What is accepted in it otherwise than before, or anew, has earned nothing; what older records did so kept what it had */
  readonly renews?: true
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
  /** What was called; records of before say none. What was begun under another acceptance is no evidence under this one */
  readonly identity?: string
  /** Epoch under which it was admitted: what was begun before a reset is no evidence after it */
  readonly trust_epoch: number
  /** It went by a yes to a call before it, and says nothing new */
  readonly repeats?: true
  /** Why the result is not what the declaration says of results */
  readonly off_schema?: string
}

export interface QuarantineBody {
  readonly server: string
  /** Digest of what ran: the same thing under another name stays quarantined; null where that is not known */
  readonly origin: string | null
  /** Principal who launched it, whose launches are refused, or null: everybody's are */
  readonly owner: string | null
  /** MP-FH id */
  readonly failure: string
  readonly reason: string
}

/** A server that is gone. */
export interface RemovedBody {
  readonly server: string
  readonly by: string
  /** Of one that a host launched (`dynamic`) nothing is kept; of the operator's what its name must live down */
  readonly scope: 'registered' | 'dynamic'
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

/** What a snapshot keeps of a ledger. */
export interface SavedLedger {
  readonly accepted: readonly AcceptedBody[]
  readonly versions: readonly (readonly [string, number])[]
  readonly forgotten: number
  readonly told: readonly (readonly [string, string])[]
  readonly trust: readonly (readonly [string, TrustRecord])[]
  readonly quarantined: readonly QuarantineBody[]
  readonly holds: readonly HoldBody[]
}

// A record says more than the fact, and what it says beside it is nothing to go by.
export const holdOf = ({ name, server, tool, lineage }: HoldBody): HoldBody => ({
  name,
  server,
  tool,
  lineage,
})
export const violationOf = ({ at, failure, detail }: ViolationBody): Violation => ({ at, failure, detail })
/** A server that is halted for what it did is so whatever else it would be halted for then. */
export const haltOf = (
  { server, origin, owner, failure, reason }: QuarantineBody,
  known?: QuarantineBody,
): QuarantineBody =>
  known !== undefined && known.origin === origin && isForDeed(known) && !isForDeed({ failure })
    ? known
    : { server, origin, owner, failure, reason }

const isForDeed = ({ failure }: Pick<QuarantineBody, 'failure'>): boolean => failure.startsWith('MP-FH-')

/** Whether a good call speaks for the tool as it is accepted now, whatever other code did. */
export const isEvidence = (
  { subject, identity, trust_epoch, repeats, off_schema }: OutcomeBody,
  { epoch }: Pick<TrustRecord, 'epoch'>,
  accepted: AcceptedSurface | null,
  known: { identity(accepted: AcceptedSurface, tool: string): string },
): boolean =>
  trust_epoch === epoch &&
  repeats !== true &&
  off_schema === undefined &&
  (identity === undefined || accepted === null || identity === known.identity(accepted, subject))

/** A surface as it is looked up. */
export const unfold = (body: AcceptedBody): AcceptedSurface => ({
  server: body.server,
  serverVersion: body.serverVersion,
  codeDigest: body.codeDigest,
  saidVersion: body.saidVersion ?? null,
  declarationVersion: body.declarationVersion,
  tools: new Map(body.tools.map((tool) => [tool.declaration.name, tool])),
  restDigest: body.restDigest,
  instructionsDigest: body.instructionsDigest ?? null,
  leftOut: body.leftOut,
  unread: body.unread ?? null,
  acceptedBy: body.acceptedBy,
})
