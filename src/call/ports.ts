// What a governed call is given: policy, evidence, people, permits, time. All of it injected, so the narrative stays pure.
import type { CallId } from '../lib/ids.ts'
import type { Decision, GovernedRequest } from '../schema/gate.ts'
import type { AcceptedTool } from './declaration.ts'
import type { Permits } from './permit.ts'
import type { TrustRecord } from './trust.ts'
import type { SallyportError } from '../errors.ts'

/** A call as somebody proposed it. */
export interface Proposal {
  readonly call: CallId
  /** `tool` for `tools/call`; the other governed methods have no declaration of arguments */
  readonly kind: 'tool' | 'method'
  readonly server: GovernedRequest['server']
  readonly subject: string
  /** Parsed arguments, `{}` when absent */
  readonly arguments: unknown
  /** The request's params exactly as they will be sent */
  readonly bytes: string
  readonly principal: string
  /** Attached session or control instance; a session-wide approval ends with it */
  readonly session: string
  readonly lineage: string | null
}

/** What is known of the thing that is to be called, at this instant. */
export type Standing =
  | {
      readonly state: 'accepted'
      readonly identity: string
      readonly declarationVersion: number
      /** Null for methods other than `tools/call` */
      readonly tool: AcceptedTool | null
    }
  | { readonly state: 'unaccepted' | 'undeclared' | 'changed' | 'quarantined'; readonly reason: string }

/** Where declarations, trust and holds are looked up. */
export interface Registry {
  standing(server: string, kind: Proposal['kind'], subject: string): Standing
  trust(server: string, subject: string): TrustRecord
  /** Name of the hold that stands on the server, the tool or the lineage, or null */
  hold(server: string, subject: string, lineage: string | null): string | null
  /** Whether the server's sandbox contains these effects and scopes */
  contains(server: string, sideEffects: readonly string[], resourceScopes: readonly string[]): boolean
  /** Null, or where and why the arguments are not what the accepted schema says */
  invalidArguments(server: string, tool: string, args: unknown): Promise<string | null> | string | null
}

/** What an operator is asked. */
export interface ApprovalQuestion {
  readonly call: CallId
  readonly identity: string
  readonly argumentsDigest: string
  readonly bytesDigest: string
  readonly principal: string
  readonly session: string
  readonly trustEpoch: number
  /** Canonical arguments, whole */
  readonly text: string
  readonly reason: string
}

/** An approval that stands, or why there is none. */
export type ApprovalAnswer =
  | {
      readonly granted: true
      readonly approval: string
      readonly scope: 'once' | 'session' | 'policy'
      readonly by: string
    }
  | {
      readonly granted: false
      readonly by: string | null
      readonly reason: string
      readonly isTimeout: boolean
    }

export interface Approver {
  /** Resolves at once where an approval stands already, or where nobody could be asked */
  ask(question: ApprovalQuestion, waiting: { readonly signal: AbortSignal }): Promise<ApprovalAnswer>
}

/** Evidence; resolves when it is durable, rejects with ERR_JOURNAL when it can't be. */
export interface Recorder {
  record(type: string, body: Readonly<Record<string, unknown>>): Promise<{ readonly seq: number }>
}

export interface GovernPorts {
  /** Digest of the rules and settings that decide; changes with every reload */
  readonly policyVersion: string
  readonly decide: (request: GovernedRequest, trust: TrustRecord) => Decision
  readonly registry: Registry
  readonly approver: Approver
  readonly permits: Permits
  readonly permitTtlMs: number
  readonly recorder: Recorder
  /** Tells what went wrong, beside the record */
  readonly refuse: (proposal: Proposal, error: SallyportError) => void
}

/** A call that may be sent, now and once. */
export interface Admission {
  readonly call: CallId
  readonly identity: string
  readonly permit: string
  /** Seq of the intent, which is durable */
  readonly intent: number
  readonly approval: string | null
  readonly trustEpoch: number
}

/** How a call ended, for its last record. */
export interface Outcome {
  readonly kind: 'result' | 'error' | 'timeout' | 'cancelled' | 'lost'
  readonly durationMs: number
  /** The answer's raw bytes, or what there is of them; null when there was none */
  readonly bytes: string | null
  readonly detail: string | null
}
