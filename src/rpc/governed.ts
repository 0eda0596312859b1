// What the control protocol says of governance: tools, approvals, trust, permits, holds and the journal's records.
import type { CallId } from '../lib/ids.ts'
import type { Declaration } from '../schema/types.gen.ts'

export interface ToolView {
  /** The displayed name, `<server>_<tool>` by default */
  readonly name: string
  readonly server: string
  readonly tool: string
  readonly description: string
  readonly decision: 'allow' | 'ask' | 'deny'
  readonly input_schema: unknown
  /** As the server claims; where it claims nothing, as the operator vouches; else false */
  readonly read_only: boolean
  /** False where it only reads, or the server claims that it only adds */
  readonly destructive: boolean
  readonly annotations: unknown
}

/** A tool in full: what it was accepted as, and what stands between it and a call. */
export interface ToolDetail extends ToolView {
  readonly output_schema: unknown
  /** `<server>/<tool>@<server-version>#<declaration-version>`; null where it was not accepted */
  readonly identity: string | null
  /** What was accepted of it, or null */
  readonly declaration: Declaration['tools'][string] | null
  /** What it has earned of its own */
  readonly tier: TrustTier
  /** Why it can't be called as it stands, or null */
  readonly halted: string | null
}

export type TrustTier = 'untrusted' | 'provisional' | 'trusted'

export interface TrustView {
  readonly identity: string
  readonly server: string
  readonly tool: string
  readonly tier: TrustTier
  readonly evidence: number
  /** 0 to 1 */
  readonly confidence: number
  readonly epoch: number
  readonly violations: readonly { readonly at: string; readonly failure: string; readonly detail: string }[]
}

export interface PermitView {
  readonly id: string
  readonly identity: string
  readonly principal: string
  readonly expires_in_ms: number
}

/** A named checkpoint; null members match anything. */
export interface HoldView {
  readonly name: string
  readonly server: string | null
  readonly tool: string | null
  readonly lineage: string | null
}

/** Which records are asked for. */
export interface AuditQuery {
  after?: number
  before?: number
  limit?: number
  from?: 'oldest' | 'newest'
  type?: string
  server?: string
  call?: string
  seq?: number
  follow?: boolean
}

/** Records that match, oldest first. */
export interface AuditPage {
  readonly records: readonly AuditRecord[]
  /** True where what was asked for is too long for one answer */
  readonly more: boolean
  readonly head: AuditAnchor
  /** With `seq` or `call`, what lies beside these records no more, or has another length */
  readonly lacking: readonly {
    readonly seq: number
    readonly member: 'request' | 'response'
    readonly detail: string
  }[]
}

/** A record of the journal as it was written; the last three say what holds its batch, and are null but in the last of it. */
export interface AuditRecord {
  readonly seq: number
  readonly at: string
  readonly daemon: string
  readonly segment: number
  readonly type: string
  readonly body: unknown
  readonly prev: string | null
  readonly hash: string | null
  readonly mac: string | null
}

/** Where a chain stands: what is kept elsewhere to see later that nothing was cut off. */
export interface AuditAnchor {
  readonly seq: number
  readonly hash: string
}

export interface AuditVerification {
  readonly ok: boolean
  readonly records: number
  readonly segments: number
  /** Files beside the journal that records name, each read and held against its digest */
  readonly sidecars: number
  readonly head: AuditAnchor
  /** Seq 0, or the last record that was let go of as `journal.keep_days` says */
  readonly begins: AuditAnchor
  readonly torn: readonly {
    readonly segment: number
    readonly offset: number
    readonly bytes: number
    readonly sha256: string
  }[]
  /** Starts of a daemon that found less than there had been: an end that was cut off, or lost with the machine's power */
  readonly shortened: readonly {
    readonly seq: number
    readonly at: string
    readonly lost: number | null
    readonly reason: string
  }[]
  /** Snapshots that no start can use: it takes longer, and loses nothing */
  readonly unusable: readonly { readonly path: string; readonly reason: string }[]
  readonly flaw: {
    readonly path: string
    readonly line: number
    readonly kind: string
    readonly detail: string
  } | null
  readonly limit: string
}

/** One thing that a call meets on its way, in the order in which it meets them. */
export interface ExplainedStep {
  readonly step:
    | 'server'
    | 'acceptance'
    | 'arguments'
    | 'rules'
    | 'trust'
    | 'approval'
    | 'side effects'
    | 'hold'
  readonly verdict: 'pass' | 'ask' | 'refuse'
  readonly detail: string
}

/** What a host names of a server that it launches. */
export interface LaunchRequest {
  readonly name: string
  readonly command: string
  readonly args?: string[]
  readonly package?: { source: string; target: string; with?: string[] }
}

/** What a call would meet, and come to as things stand. */
export interface Explanation {
  readonly action: 'allow' | 'ask' | 'deny'
  readonly rule: string | null
  readonly reason: string
  readonly identity: string | null
  readonly server_trust: 'trusted' | 'untrusted' | 'sandboxed'
  readonly tier: TrustTier
  /** Beyond what the rules say */
  readonly outcome: 'sent' | 'asked' | 'refused'
  readonly steps: readonly ExplainedStep[]
}

/** How a call was decided, as the journal holds it. */
export interface ExplainedCall {
  readonly call_id: CallId
  readonly server: string
  /** Tool or method */
  readonly subject: string
  /** What it was the call of; null where that was refused before it was known */
  readonly identity: string | null
  readonly principal: string
  readonly session: string
  /** `waiting`: it was sent, and no outcome is on record; `refused`: it was not sent */
  readonly state: 'refused' | 'waiting' | 'done'
  /** What the rules said; null where it was refused before they were asked */
  readonly action: 'allow' | 'ask' | 'deny' | null
  /** File and entry that decided, or null where none did */
  readonly rule: string | null
  /** Where that stands in a file of the configuration that holds, or null where it is another one or has no such line */
  readonly place: { readonly path: string; readonly line: number } | null
  readonly reason: string
  /** Digest of what it was decided by: rules, settings and the server's entry; and whether that is what holds at present */
  readonly policy: { readonly version: string; readonly is_present: boolean }
  /** What the tool had earned then; null where it was refused before that was asked */
  readonly trust: { readonly tier: TrustTier; readonly epoch: number } | null
  /** The answer of people, where they were asked */
  readonly approval: {
    readonly seq: number
    readonly id: string | null
    readonly granted: boolean
    readonly scope: string | null
    readonly by: string | null
    readonly reason: string | null
  } | null
  readonly permit: string | null
  /** What the check at the boundary came to: `passed`, or the check that failed; `unknown` where no record tells, null where it was not reached */
  readonly check: string | null
  readonly intent: { readonly seq: number; readonly at: string } | null
  readonly outcome: {
    readonly seq: number
    readonly at: string
    readonly outcome: string
    readonly detail: string | null
  } | null
  readonly refusal: { readonly seq: number; readonly at: string; readonly code: string } | null
  /** What would have it come out otherwise next time */
  readonly change: string
}

/** Names a piece of a result that was too long to be answered at once. */
export interface OutputRequest {
  readonly call_id: CallId
  /** 0, or what the last piece gave as `next` */
  readonly offset?: number
  readonly limit?: number
}

/** A piece of the file that `output_path` names. */
export interface OutputPiece {
  readonly call_id: CallId
  /** Length of the whole */
  readonly bytes: number
  readonly offset: number
  readonly text: string
  /** Offset of the next piece, or null after the last */
  readonly next: number | null
}

/** Names of servers, by what a reload did to them. */
export interface ReloadResult {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  readonly unchanged: readonly string[]
  /** Registered or launched servers that the configuration does not allow any more */
  readonly left_out: readonly { readonly server: string; readonly code: string; readonly reason: string }[]
  readonly warnings: readonly string[]
}
