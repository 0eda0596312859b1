// What governance tells whoever holds a server's stdin: whether a call may be sent, now and once. `daemon/` composes it.
import type { SallyportError } from '../errors.ts'
import type { CallId, InstanceId } from '../lib/ids.ts'
import type { Comparing } from '../lib/once-compared.ts'
import type { Decision, GovernedRequest } from './gate.ts'
import type { ServerSettings } from './settings.ts'

/** Who connected, as the kernel noted it; the pid is often a shim's, and may have been reused: evidence, never authority. */
export interface Peer {
  readonly uid: number
  readonly gid: number
  readonly pid: number
}

/** A call as somebody proposed it. */
export interface Proposal extends GovernedRequest {
  readonly call: CallId
  /** The process that it would go to; null where none runs */
  readonly instance: InstanceId | null
  /** The request's params exactly as they will be sent */
  readonly bytes: string
  /** What is recorded of them: the same, save the answers that a person gave */
  readonly evidence: string
  readonly principal: string
  readonly peer: Peer
  /** Attached session or control instance; a session-wide approval ends with it */
  readonly session: string
  /** The host's opaque string, or null */
  readonly lineage: string | null
  /** The literal of its id as the server will read it, or null where that only counts requests */
  readonly id: string | null
  /** Why it can't be sent whatever policy says: the server is not there, or shows nothing that could be judged */
  readonly obstacle: SallyportError | null
  /** Whether what the server lists was compared with what was accepted; rejects where there is no end to that */
  readonly comparing: Comparing
  /** Whether its request is sent only when other things in it were asked about, too: it is confirmed then */
  readonly isPart: boolean
}

/** A call that may be sent, now and once. */
export interface Admission {
  readonly call: CallId
  readonly instance: InstanceId | null
  readonly server: string
  readonly kind: GovernedRequest['kind']
  readonly subject: string
  readonly identity: string
  readonly permit: string
  /** Seq of the intent, which is durable */
  readonly intent: number
  readonly approval: string | null
  readonly policyVersion: string
  readonly trustEpoch: number
  /** It goes by a yes to a call before it: that it is good says nothing new of its tool */
  readonly repeats: boolean
  readonly principal: string
  readonly peer: Peer
  /** What its records say of it; one object for many calls */
  readonly target: object
  readonly lineage: string | null
  /** Id that the process of this call alone is to get, where the server has one for each call; otherwise null */
  readonly process: InstanceId | null
  /** Records and tells that it is not sent after all; resolves with what the caller is told. Null where the dispatch is in this turn */
  readonly refuse: ((error: SallyportError) => Promise<SallyportError>) | null
  /** As in the proposal, for what has to wait on: until then the call is not sent */
  readonly comparing: Comparing
  /** What the call holds of secrets until it is settled; null where it needs none */
  readonly secrets: AdmittedSecrets | null
  /** Its place among the calls that the server works on, until it is settled */
  readonly turn: Turn
}

/** The place of one call among those that a server works on at once; ended by whoever has it, and over once it was. */
export interface Turn {
  end(): void
}

/** The secrets of one call, as far as whoever sends it has to know them. */
export interface AdmittedSecrets {
  readonly names: readonly string[]
  /** Members of `_meta["sallyport/credentials"]` of the one request, or null */
  readonly meta: Readonly<Record<string, string>> | null
}

/** How a call ended, for its last record. */
export interface Outcome {
  /** `input-required`: an answer that asks, and ends nothing; the call that brings the answers is another one */
  readonly kind: 'result' | 'input-required' | 'tool-error' | 'error' | 'timeout' | 'cancelled' | 'lost'
  readonly durationMs: number
  /** The answer's raw JSON; null when there was none */
  readonly bytes: string | null
  readonly detail: string | null
  /** It is what the server says of the call’s task, and not what its tool gave */
  readonly isState?: true
}

/** What a running server says of itself, as the supervisor asked it. */
export interface Observation {
  readonly server: ServerSettings
  readonly instance: InstanceId
  /** Tool objects as the server listed them, by name; a text in place of one says why nobody can tell what it is */
  readonly tools: ReadonlyMap<string, unknown>
  /** The version that it says it is itself; null where it says none */
  readonly saidVersion: string | null
  /** Its instructions, prompts and resource templates; null where it was asked for its tools alone */
  readonly rest: object | null
}

export interface Waiting {
  readonly signal: AbortSignal
  /** Why the signal was aborted, or null; without it the signal alone tells */
  readonly reason?: SallyportError | null
  /** Called when a person is asked and has not answered yet */
  readonly asked?: () => void
  /** Called as it begins to wait for its turn at the server, and as it waits for that no more */
  readonly queued?: (isWaiting: boolean) => void
  /** Waits no longer than that for its turn, ms */
  readonly limitMs?: number
}

/** Whoever proposed a call, told one or the other, once. */
export interface Asker {
  /** The call may be sent, before this returns and once */
  admitted(admission: Admission): void
  refused(error: SallyportError): void
}

/** The one way to a server for whatever policy governs. */
export interface Governor {
  /**
   * Resolves when the call may be sent, in the same turn and once; rejects with the `SallyportError` that the caller is
   * told. Nothing may be sent before.
   */
  admit(proposal: Proposal, waiting: Waiting): Promise<Admission>
  /** As `admit`, without a promise: where nothing has to be waited for, the asker is told with the journal's next batch */
  admitTo(proposal: Proposal, waiting: Waiting, asker: Asker): void
  /**
   * Null where what was admitted a while ago may still be sent: for a call whose own process had to be started first, and for part
   * of a request. What that process was observed to list counts too. Otherwise resolves with what the caller is told, once that is on record.
   */
  confirm(admission: Admission): Promise<SallyportError> | null
  /** What `confirm` refuses it for is one thing; whatever else keeps it from being sent is `error`. Resolves as `confirm` does */
  refuse(admission: Admission, error: SallyportError): Promise<SallyportError>
  /** Records how an admitted call ended; to be called once for each. False where it was refused by then, and nothing is recorded */
  settle(admission: Admission, outcome: Outcome): boolean
  /**
   * Null where what an admitted request has begun, and what lasts, may go on by what holds now: that was allowed is allowed, that
   * a person said yes to is not denied, and no hold covers it. Otherwise it is to end, is recorded and told as ended, and this is why.
   */
  lasts(admission: Admission, request: GovernedRequest): SallyportError | null
  /** Compares a surface with the accepted one and records what is new; calls of the instance are admitted on it */
  observe(seen: Observation): Promise<void>
  /**
   * Resolves with words on how what an instance was observed to list stands against its acceptance; that nothing was
   * accepted yet is no failure. Where a changed or undeclared surface, or a declaration about something else, speaks
   * against it, rejects with the `SallyportError` that says so.
   */
  validate(seen: Observation): Promise<string>
  /** What the rules say of a request, by what its tool has earned so far: as a call would be decided now */
  decide(request: GovernedRequest): Decision
  /** True when the tool object is the accepted one, or nothing is held against showing it */
  shows(server: ServerSettings, instance: InstanceId | null, tool: unknown): boolean
  /** False where no request of that method passes, since what the instance lists beside its tools is not what was accepted */
  offers(server: ServerSettings, instance: InstanceId | null, method: string): boolean
  /** True when a server's instructions are the accepted ones, or are accepted by being seen first, of an instance those alone */
  introduces(server: ServerSettings, instance: InstanceId | null, instructions: string): boolean
  /**
   * Tells where hosts may see something else of a server's lists than before by nothing that it said: another acceptance, or other
   * rules. Until the returned function is called.
   */
  watch(server: string, changed: () => void): () => void
  /** What a principal's person told a server, which is to be in no record of that server */
  confide(server: string, principal: string, values: readonly string[]): void
  /** The instance is gone */
  forget(instance: InstanceId): void
}
