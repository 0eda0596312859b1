// What the supervisor is given: how to launch, whom to tell, what policy says.
import type { Duplex } from 'node:stream'
import type { SallyportError } from '../errors.ts'
import type { CallId, InstanceId, SessionId } from '../lib/ids.ts'
import type { RawJson } from '../lib/raw-json.ts'
import type { Principal, ServerDetail, ServerView } from '../rpc/protocol.ts'
import type { SandboxProcess } from '../sandbox/driver.ts'
import type { RedactingStream, Redactor } from '../schema/credentials.ts'
import type { Gate } from '../schema/gate.ts'
import type { Governor } from '../schema/governor.ts'
import type { Room } from '../schema/room.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'

/** A server that runs, and what must not come out of it. */
export interface Running extends SandboxProcess {
  /** Knows its secrets; null where it can have none */
  readonly redactor: Redactor | null
  /** For what is kept of its stderr: without what persons told it; null where nobody can have told it anything */
  readonly discreet: (() => RedactingStream) | null
}

/** Starts a confined server, or fails with the `SallyportError` that says why; aborting leaves nothing behind. */
export type Launch = (
  server: ServerSettings,
  instance: InstanceId,
  waiting: {
    readonly signal: AbortSignal
    /** Called when the server's code is known: reading it for the first time is no part of the server's own time */
    readonly registered: () => void
    /** Uid whose instance it is */
    readonly principal: string
  },
) => Promise<Running>

/** Something that happened, before it gets a number and a time. */
export interface Happening {
  readonly type: string
  readonly server: string | null
  readonly instance: InstanceId | null
  /** Uid whose event it is; null is everybody's */
  readonly principal: string | null
  readonly detail: Readonly<Record<string, unknown>>
  /** The bug of ours that it comes of, for the log alone: where it showed is nobody's to know */
  readonly bug?: SallyportError
}

export type Emit = (event: Happening) => void

/** What a server's entry resolves to on this machine, for `show`. */
export type Describe = (
  server: ServerSettings,
) => Pick<ServerDetail, 'command' | 'package_digest' | 'environment'>

/** Settings and the policy that follows from them. */
export interface Policy {
  readonly settings: Settings
  readonly gate: Gate
  readonly governor: Governor
}

/** Sandboxes that wait at their gates for the calls of servers that have a process for each. */
export interface WarmPools {
  /** The server is in use: soon some wait for it. Nothing where its entry asks for none */
  prepare(server: string): void
  /** None that waits in this turn is drawn any more, and until `prepare` none is built; resolves when they are gone */
  drain(server: string, reason: string): Promise<void>
  /** Null for servers whose processes are not each one call's own */
  view(server: string): ServerView['pool']
}

/** Keeps what is too long to be answered at once. */
export interface Overflow {
  /** JSON without secrets, as evidence is kept */
  redact(json: string): Promise<string>
  /** Keeps a text for a principal for a while; resolves with the file's path, or null where it can't be kept */
  keep(call: CallId, principal: string, text: string): Promise<string | null>
}

export interface Ports extends Policy {
  readonly overflow: Overflow
  /** The same, narrowed by the project file of a folder that a caller names; throws where it asks for more */
  readonly narrow: (project: string, caller: Caller) => Promise<Policy>
  readonly launch: Launch
  readonly pools: WarmPools
  readonly emit: Emit
  readonly describe: Describe
  /** A server was lost too often: halts it in this turn, and puts that on record */
  readonly stormed: (server: string, reason: string) => void
  /** From 0 up to 1; spreads restarts */
  readonly random: () => number
}

/** Who asks, and how far they may see: a host sees its own instances and calls, the operator everybody's. */
export interface Caller {
  readonly principal: Principal
  readonly role: 'host' | 'operator'
}

/** A `tools/call` as the control socket took it. */
export interface ToolCall {
  readonly server: string
  readonly tool: string
  /** The arguments as the caller wrote them: an object on one line */
  readonly arguments: RawJson
  /** Shorter than the server's own `call_ms`, or null */
  readonly timeoutMs: number | null
  /** Generation of the tool list that the caller saw, or null */
  readonly generation: number | null
  /** The caller's opaque string, or null */
  readonly lineage: string | null
}

/** A session that was granted and waits for its stream. */
export interface Attachment {
  readonly session: SessionId
  readonly server: string
  /** Hands over the stream for good, and its room; `head` is what was read behind the attach request */
  take(stream: Duplex, head: Buffer, room: Room): void
  /** The host was gone before it could take over: the session ends */
  abandon(): void
}

/** How a session ended: the server's own status, 128 + n for a signal. */
export interface SessionEnd {
  readonly status: number
  readonly reason: string | null
}
