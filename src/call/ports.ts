// What a governed call is given: policy, evidence, people, permits, time. All of it injected, so the narrative stays pure.
import type { CallId, InstanceId } from '../lib/ids.ts'
import type { Decision, GovernedRequest } from '../schema/gate.ts'
import type {
  Admission,
  AdmittedSecrets,
  Outcome,
  Peer,
  Proposal,
  Turn,
  Waiting,
} from '../schema/governor.ts'
import type { RecordType } from '../schema/record-type.ts'
import type { About, Abouts } from './about.ts'
import type { AcceptedTool } from './declaration.ts'
import type { Permits } from './permit.ts'
import type { TrustRecord } from './trust.ts'
import type { TurnAsker } from './turns.ts'
import type { SallyportError } from '../errors.ts'

/** What is known of the thing that is to be called, at this instant. */
export type Standing =
  | {
      readonly state: 'accepted'
      readonly identity: string
      readonly declarationVersion: number
      /** Null for methods other than `tools/call` */
      readonly tool: AcceptedTool | null
    }
  | {
      readonly state:
        | 'unaccepted'
        | 'unknown'
        | 'changed'
        | 'replaced'
        | 'ungoverned'
        | 'violated'
        | 'unavailable'
      readonly reason: string
    }

/** Where declarations, trust and holds are looked up. */
export interface Registry {
  standing(server: string, instance: InstanceId | null, kind: Proposal['kind'], subject: string): Standing
  trust(server: string, subject: string): TrustRecord
  /** Name of the hold that stands on the server, the tool or the lineage, or null */
  hold(server: string, subject: string, lineage: string | null): string | null
  /** Null when the server's sandbox contains these effects and scopes, or what it does not contain and for want of which grant */
  uncontained(
    server: string,
    sideEffects: readonly string[],
    resourceScopes: readonly string[],
  ): string | null
  /** Null, or where and why the arguments, whose JSON is `text`, are not what the accepted schema says; `principal` is whose they are */
  invalidArguments(
    server: string,
    tool: string,
    args: unknown,
    text: string,
    principal: string,
  ): Promise<string | null> | string | null
}

/** What an operator is asked. */
export interface ApprovalQuestion {
  readonly call: CallId
  readonly peer: Peer
  readonly identity: string
  readonly argumentsDigest: string
  readonly bytesDigest: string
  /** Of a call that is made again the same, `bytesDigest` need not be: see `repeat.ts` */
  readonly repeatDigest: string
  readonly principal: string
  readonly session: string
  readonly policyVersion: string
  readonly trustEpoch: number
  /** Canonical arguments, whole, and what else a call says to its server; made where there is somebody to read it */
  readonly text: () => string
  readonly reason: string
}

/** An approval that stands, or why there is none. */
export type ApprovalAnswer =
  | {
      readonly granted: true
      readonly approval: string
      readonly scope: 'once' | 'session' | 'policy'
      readonly by: string
      /** It was said of a call before this one, which this one is made like */
      readonly repeats?: true
    }
  | {
      readonly granted: false
      readonly by: string | null
      readonly reason: string
      readonly isTimeout: boolean
    }

/** An approval that stands. */
export type Yes = Extract<ApprovalAnswer, { granted: true }>

export interface Approver {
  /** Resolves at once where an approval stands already, or where nobody could be asked */
  ask(question: ApprovalQuestion, waiting: Waiting): Promise<ApprovalAnswer>
  /** To be called once with each answer, in the turn in which its permit is issued, or none is: a yes that was taken back until then is a no */
  claim(answer: ApprovalAnswer): ApprovalAnswer
  /** Tells once where a yes is taken back before it is claimed */
  watch(answer: ApprovalAnswer, withdrawn: () => void): void
}

/** A message as it was said; kept whole within a cap, otherwise as its digest and a file beside the journal. */
export type Raw = Readonly<Partial<Record<'request' | 'response', string>>>

/** What is recorded of a call that is about to be sent. */
export interface Intent {
  readonly call: CallId
  /** Both frozen, and the same for many calls */
  readonly about: About
  readonly argumentsDigest: string
  readonly bytesDigest: string
  readonly permit: string
  readonly approval: string | null
  readonly lineage: string | null
  /** The literal of its request's id, or null where that only counts */
  readonly id: string | null
  /** What it says of the secrets that the call will hold; null where there are none */
  readonly foreseen: Readonly<Record<string, unknown>> | null
  readonly request: string
}

/** What is recorded of a call that has ended. */
export interface Ended {
  readonly admission: Pick<
    Admission,
    | 'call'
    | 'server'
    | 'kind'
    | 'subject'
    | 'identity'
    | 'principal'
    | 'permit'
    | 'intent'
    | 'trustEpoch'
    | 'repeats'
    | 'target'
  >
  readonly outcome: Outcome
  /** Why the result is not what its accepted declaration says; absent where it is, or nobody looked */
  readonly offSchema?: string
  /** What became of the call's secrets; null where it had none */
  readonly used: Readonly<Record<string, unknown>> | null
}

/** Whoever goes on once a record is durable; told one or the other, once, and never before the recorder returned. */
export interface Told {
  durable(position: { readonly seq: number }): void
  /** ERR_JOURNAL */
  failed(error: SallyportError): void
}

/** Evidence. What becomes of a call's records is told without a promise: there are thousands of them a second. */
export interface Recorder {
  /** Resolves when it is durable, rejects with ERR_JOURNAL when it can't be */
  record(
    type: RecordType,
    body: Readonly<Record<string, unknown>>,
    raw?: Raw,
  ): Promise<{ readonly seq: number }>
  intent(intent: Intent, told: Told): void
  outcome(ended: Ended, told: Told): void
}

/** A call that is about to be sent, as far as its secrets and its place are concerned. */
export interface LeaseAsk {
  readonly call: CallId
  readonly permit: string
  readonly server: string
  readonly instance: InstanceId | null
  readonly kind: Proposal['kind']
  readonly subject: string
  readonly principal: string
  readonly sideEffects: readonly string[]
  /** Credentials that the tool's declaration names */
  readonly credentials: readonly string[]
}

/** Where a call goes and what it may use, from the check until it is settled. */
export interface CallEquipment {
  readonly process: InstanceId | null
  readonly secrets: AdmittedSecrets | null
  /** The call is not sent after all */
  end(): void
}

export interface GovernPorts {
  /** Digest of what decides about a server's calls at present: rules, settings, its own entry */
  readonly policyVersion: (server: string) => string
  readonly decide: (request: GovernedRequest, trust: TrustRecord) => Decision
  readonly registry: Registry
  readonly approver: Approver
  readonly permits: Permits
  /** How long a permit to call this server holds, ms */
  readonly permitTtlMs: (server: string) => number
  readonly recorder: Recorder
  readonly abouts: Abouts
  /** What the intent says of the secrets that will be leased; null where there are none */
  readonly foresee: (ask: Omit<LeaseAsk, 'permit'>) => Readonly<Record<string, unknown>> | null
  /** Leases them and counts the call in; rejects with ERR_CREDENTIAL_… where a source fails */
  readonly equip: (ask: LeaseAsk, waiting: Waiting) => Promise<CallEquipment> | CallEquipment
  readonly turns: {
    /** The call's place among those that the server works on at once; null where there is none to be had at present */
    take(proposal: Proposal): Turn | null
    /** Waits for it, from the turn of the event loop on in which there was none: refuses with ERR_BUSY, or the wait's own reason */
    wait(proposal: Proposal, waiting: Waiting, asker: TurnAsker): void
  }
  /** What is to be on record before anything is called, being recorded: rejects where it can't be. Null where it all is */
  readonly owed: () => Promise<void> | null
  /** Takes the end of a call that was never sent, to record it as soon as the journal can be written */
  readonly owe: (ended: Ended) => void
  /** Tells what went wrong, beside the record */
  readonly refuse: (proposal: Proposal, error: SallyportError) => void
}
