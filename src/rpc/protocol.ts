// The control protocol: every method of both sockets, as docs/control-protocol.md lists them; a test holds the two together.
import type { Acceptance, Draft } from './acceptance.ts'
import type { InstanceView } from './instance-view.ts'
import type { PoolView } from './pool-view.ts'
import type { CallId, DaemonId, InstanceId, SessionId } from '../lib/ids.ts'
import type { RawJson } from '../lib/raw-json.ts'
import type { InjectionKind } from '../schema/credentials.ts'
import type { EgressGrant } from '../schema/egress.ts'
import type { PendingApproval, SettledApproval, StandingApproval } from './approvals.ts'
import type {
  AuditPage,
  AuditQuery,
  AuditRecord,
  AuditVerification,
  ExplainedCall,
  Explanation,
  HoldView,
  LaunchRequest,
  OutputPiece,
  OutputRequest,
  PermitView,
  ReloadResult,
  ToolDetail,
  ToolView,
  TrustView,
} from './governed.ts'

export type { InstanceState, InstanceView } from './instance-view.ts'

/** What a peer must speak to be understood; a gate on the protocol, never on the version. */
export const protocolId = 'sallyport/1'

/** What hosts see of a server's state. */
export type HostState = 'connected' | 'pending' | 'failed' | 'needs-auth' | 'disabled'

/** Who is calling, as the kernel said; the pid is evidence, never authority. */
export interface Principal {
  readonly kind: 'uid'
  readonly id: string
  readonly attributes: { readonly uid: number; readonly gid: number; readonly pid: number }
}

export interface Hello {
  readonly protocol: typeof protocolId
  readonly version: string
  readonly daemon: DaemonId
  readonly pid: number
  readonly separation: 'full' | 'none'
  /** What holds each limit of a sandbox of this daemon where its profile takes whatever there is, in the words of an instance’s `enforced_by` */
  readonly limits: Readonly<Record<'memory' | 'pids' | 'cpu', string>>
  readonly principal: Principal
  readonly runtime_dir: string
}

export interface ServerView {
  readonly name: string
  readonly state: HostState
  readonly version: string
  readonly trust: 'trusted' | 'untrusted' | 'sandboxed'
  readonly profile: string
  readonly scope: string
  readonly enabled: boolean
  readonly instances: readonly InstanceView[]
  /** What waits for its calls; null where they have no processes of their own */
  readonly pool: PoolView | null
  readonly reason: string | null
}

export interface ServerDetail extends ServerView {
  readonly command: {
    readonly name: string
    readonly path: string
    readonly sha256: string
    readonly args: readonly string[]
  } | null
  readonly package_digest: string | null
  readonly justification: string
  readonly tags: readonly string[]
  /** Whether it may list other tools than it was registered with */
  readonly surface: 'static' | 'dynamic'
  /** Who accepts what it lists */
  readonly acceptance: 'manual' | 'first-use'
  /** Tools that its entry declares; null where it declares none itself */
  readonly declared: readonly string[] | null
  /** How the caller's instance introduces itself, as accepted: at most 2048 characters; null where it says nothing, or runs not */
  readonly instructions: string | null
  readonly mounts: readonly {
    readonly source: string
    readonly target: string
    readonly access: string
    readonly reason: string
  }[]
  /** Hosts that it may connect to */
  readonly egress: readonly EgressGrant[]
  readonly egress_when: 'always' | 'calling'
  /** Credentials that its calls may use: names and places, never values */
  readonly credentials: readonly {
    readonly use: string
    readonly inject: InjectionKind
    readonly as: string
    /** `host:port` */
    readonly hosts: readonly string[]
  }[]
  /** What one process is for */
  readonly instance: 'session' | 'call' | 'shared'
  readonly environment: Readonly<Record<string, string>>
}

export interface CallResult {
  readonly call_id: CallId
  readonly type: 'output' | 'error'
  /** The server's `result`, or the `error` that it answered with, byte for byte as it came; its beginning where it was truncated */
  readonly data: unknown
  readonly error_text: string | null
  readonly metadata: {
    readonly duration_ms: number
    /** True where the result was longer than `output.result_bytes` */
    readonly truncated: boolean
    /** File that holds all of it, for the daemon's uid; `calls/output` reads it for its caller */
    readonly output_path: string | null
    readonly identity: string
    readonly permit: string | null
  }
}

export interface SallyportEvent {
  readonly seq: number
  readonly at: string
  readonly type: string
  readonly server: string | null
  readonly instance: InstanceId | null
  readonly detail: Readonly<Record<string, unknown>>
}

/** Method -> parameters and result, for hosts. */
export interface HostMethods {
  'sallyport/hello': { params: { protocol?: string }; result: Hello }
  'servers/list': { params: Record<string, never>; result: { servers: readonly ServerView[] } }
  'servers/get': { params: { server: string }; result: ServerDetail }
  'servers/start': { params: { server: string }; result: InstanceView }
  'servers/stop': { params: { server: string }; result: { stopped: readonly InstanceId[] } }
  'servers/launch': { params: LaunchRequest; result: ServerView }
  'servers/remove': {
    params: { server: string }
    result: { removed: string; stopped: readonly InstanceId[]; permits: readonly string[] }
  }
  'tools/list': {
    params: { server?: string; all?: boolean }
    result: {
      tools: readonly ToolView[]
      generation: number
      /** Tools that a search would find and the list leaves out */
      deferred: number
      /** Names that two tools would have had; neither is shown */
      collisions: readonly string[]
    }
  }
  'tools/describe': { params: { server: string; tool: string }; result: ToolDetail }
  'tools/search': {
    params: { query: string; server?: string; limit?: number }
    result: { tools: readonly ToolView[]; generation: number; searched: number }
  }
  'tools/call': {
    params: {
      server: string
      tool: string
      arguments?: Record<string, unknown> | RawJson
      timeout_ms?: number
      generation?: number
      lineage?: string
    }
    result: CallResult
  }
  /** Names a call by its id, or a request in flight on this same connection by its JSON-RPC id */
  'calls/cancel': {
    params: { call_id?: CallId; request?: string | number; reason?: string }
    result: { cancelled: boolean }
  }
  'calls/output': { params: OutputRequest; result: OutputPiece }
  'events/subscribe': { params: { since?: number }; result: { subscribed: true; seq: number } }
  'session/attach': {
    params: { server: string; project?: string; protocol?: string }
    result: { session: SessionId; server: string }
  }
  'session/result': {
    params: { session: SessionId }
    result: { ended: boolean; status: number; reason: string | null }
  }
}

/** Method -> parameters and result, for the operator, beyond those of hosts. */
export interface OperatorMethods extends HostMethods {
  'servers/test': {
    params: { server: string }
    result: { ok: boolean; steps: readonly { step: string; ok: boolean; detail: string; ms: number }[] }
  }
  'servers/logs': {
    params: { server: string; lines?: number; follow?: boolean }
    result: { lines: readonly string[]; dropped: number }
  }
  'servers/add': {
    params: { server: string; entry: Record<string, unknown>; directory?: string }
    result: ServerDetail
  }
  'servers/declare': {
    params: { server: string }
    result: Draft
  }
  'servers/quarantine': {
    params: { server: string; reason?: string }
    result: { server: string; permits: readonly string[] }
  }
  'servers/release': {
    params: { name: string; what?: 'quarantine' | 'hold'; reason?: string }
    result: { released: readonly ('quarantine' | 'hold')[] }
  }
  'servers/hold': {
    params: { name?: string; server?: string; tool?: string; lineage?: string; reason?: string }
    result: HoldView
  }
  'servers/holds': { params: Record<string, never>; result: { holds: readonly HoldView[] } }
  'declarations/accept': {
    params: { server: string; declaration?: Record<string, unknown>; tools?: string[] }
    result: Acceptance
  }
  'approvals/list': {
    params: Record<string, never>
    result: {
      pending: readonly PendingApproval[]
      standing: readonly StandingApproval[]
      /** Operator connections that are subscribed; with none, every question is a no */
      listeners: number
    }
  }
  'approvals/text': {
    params: { id: string; offset?: number }
    result: { id: string; text: string; next: number | null }
  }
  'approvals/approve': {
    params: { id: string; scope?: 'once' | 'session' | 'policy' }
    result: { id: string; scope: 'once' | 'session' | 'policy' }
  }
  'approvals/deny': { params: { id: string; reason?: string }; result: { id: string } }
  'approvals/subscribe': {
    params: Record<string, never>
    result: { subscribed: true; pending: readonly PendingApproval[] }
  }
  'trust/list': { params: { server?: string }; result: { trust: readonly TrustView[] } }
  'trust/reset': {
    params: { server: string; tool?: string; reason?: string }
    result: { reset: readonly TrustView[] }
  }
  'permits/list': { params: Record<string, never>; result: { permits: readonly PermitView[] } }
  'permits/revoke': {
    params: { id?: string; server?: string; reason?: string }
    result: { revoked: readonly string[] }
  }
  'audit/query': { params: AuditQuery; result: AuditPage }
  'audit/verify': { params: { anchor?: { seq: number; hash: string } }; result: AuditVerification }
  'policy/explain': {
    params: { server: string; tool: string; arguments?: Record<string, unknown> | RawJson; lineage?: string }
    result: Explanation
  }
  'calls/explain': { params: { call_id: CallId }; result: ExplainedCall }
  'daemon/reload': { params: Record<string, never>; result: ReloadResult }
  'daemon/shutdown': { params: { reason?: string }; result: { stopping: true } }
}

/** A line of a server's log, as it comes. */
export interface LogLine {
  readonly line: string
  /** Lines before it that went by, since they were read too slowly */
  readonly lost: number
}

/** Notifications of the daemon on a control connection. */
export interface Notifications {
  'events/event': SallyportEvent
  'servers/log': { server: string } & LogLine
  'approvals/asked': PendingApproval
  'approvals/settled': SettledApproval
  'audit/record': AuditRecord
}
