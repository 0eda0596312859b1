// What the sandbox's doors and whoever opens, watches and composes them agree on. `egress/` keeps it, `daemon/` wires it.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { InstanceId } from '../lib/ids.ts'

/** A host and port, both exact. `host` is canonical: lower case, ASCII, no dot at its end. */
export interface EgressEndpoint {
  readonly host: string
  readonly port: number
}

/** One entry of a server's `egress`. */
export interface EgressGrant {
  /** Exact name, or `*.name` */
  readonly host: string
  readonly port: number
  /** The literal address that the host has, judged as a resolved one is; null where a resolver is asked */
  readonly address: string | null
  /** Whether private, loopback and link-local addresses are allowed for the name */
  readonly private: boolean
  /** Whether a connection must begin with a ClientHello that names the host; `auto` was settled by the port */
  readonly tls: boolean
  readonly reason: string
}

/** What one sandbox may reach. */
export interface EgressPolicy {
  readonly server: string
  readonly instance: InstanceId
  readonly grants: readonly EgressGrant[]
  readonly limits: EgressLimits
}

export interface EgressLimits {
  /** Connections at once */
  readonly connections: number
  /** From the judged name to a connection upstream, ms */
  readonly connectMs: number
  /** From the first byte wanted to the last byte of a ClientHello or a request's head, ms */
  readonly handshakeMs: number
  /** Without a byte either way, ms */
  readonly idleMs: number
  /** Life of one connection, ms */
  readonly totalMs: number
  /** From the sandbox, over one connection */
  readonly bytesUp: number
  /** To the sandbox, over one connection */
  readonly bytesDown: number
}

/**
 * `connected`: dialled, bytes may flow; `refused`: the policy said no and nothing was dialled; `failed`: it was allowed
 * and came to nothing, e.g. nobody listens; `cut`: ended by the proxy; `ended`: by one of its ends
 */
export type EgressVerdict = 'connected' | 'refused' | 'failed' | 'cut' | 'ended'

/** Something at a sandbox's door; never a byte of what was said. */
export interface EgressEvent {
  /** `opened` once upstream answered; `closed` follows each `opened`; `refused` stands alone */
  readonly kind: 'opened' | 'refused' | 'closed'
  /** One for each connection, unique within the door; `refused` inside the sandbox has one too */
  readonly connection: string
  /** As it was asked for, escaped and at most 253 letters; an address for what was refused inside */
  readonly host: string
  /** Null for a name that was only looked up */
  readonly port: number | null
  /** The address that was judged or dialled, or null where it never came to that */
  readonly address: string | null
  readonly verdict: EgressVerdict
  /** One stable word, e.g. name-not-listed, port-not-listed, address-refused:loopback, sni-mismatch, doors-shut; or null */
  readonly reason: string | null
  readonly bytesUp: number
  readonly bytesDown: number
  readonly durationMs: number
  /** Names of the credentials that it carried */
  readonly swapped: readonly string[]
  /** Names of the credentials that its host sent back, and that were masked */
  readonly redacted: readonly string[]
  /** How many of this very kind it stands for: a flood is counted, not told one by one */
  readonly count: number
}

/** Whether the doors stand open for a connection now. */
export type DoorVerdict = { readonly open: true } | { readonly open: false; readonly reason: string }

/** Who is told, and asked, by a door. */
export interface EgressWatch {
  /** Must not throw, and must not wait */
  event(event: EgressEvent): void
  /** Asked once name and port were judged, before anything is resolved or dialled */
  mayConnect(target: EgressEndpoint): DoorVerdict
}

/** A target that was judged. */
export interface EgressTarget extends EgressEndpoint {
  readonly server: string
  readonly instance: InstanceId
  readonly grant: EgressGrant
  /** Id of the connection, as its events have it */
  readonly connection: string
}

/**
 * Why a connection that carried a credential ends with the call. Said by an interceptor it means that the way on is gone, and that
 * the client has a second to see that.
 */
export const leaseEnded = 'lease-ended'

/** What an interceptor tells of a connection beyond its bytes. */
export interface InterceptionLog {
  /** A credential's placeholder was replaced */
  swapped(credential: string): void
  /** A credential's value came back from the host, and was masked */
  redacted(credential: string): void
  /** Why the connection was ended by us; the first word stands */
  cut(reason: string): void
}

/** Stands in the way of connections to hosts that carry a credential, after name and port were judged. */
export interface Interceptor {
  intercepts(target: EgressEndpoint): boolean
  /**
   * Owns the client's stream from here and ends it; resolves when the connection is over, never rejects.
   * `dial` resolves and judges anew, and connects to what it judged; once for each upstream connection.
   */
  serve(
    client: Duplex,
    target: EgressTarget,
    dial: (signal: AbortSignal) => Promise<Socket>,
    log: InterceptionLog,
  ): Promise<void>
}

/** Looks for placeholders of credentials and for secrets in what a sandbox says. Who is to know of it was told by then. */
export interface Screen {
  /**
   * For a connection that nobody intercepts: looks at what goes up, chunk by chunk, and says false where one is in it,
   * across chunks too. The connection is cut then, and that chunk is not sent.
   */
  stream(target: EgressEndpoint): (chunk: Uint8Array) => boolean
  /** For what is whole: a name as it was asked for, in any case, or the head of a request */
  text(text: string, target: EgressEndpoint): boolean
}

/** A connection as `Door.cut` chooses it. */
export interface OpenConnection extends EgressEndpoint {
  readonly connection: string
  readonly swapped: readonly string[]
}

/** The listening end of one sandbox's way out. Disposing cuts what is open and leaves neither socket nor folder. */
export interface Door extends AsyncDisposable {
  /** The socket's host path */
  readonly path: string
  connections(): readonly OpenConnection[]
  /** Ends connections: nothing more goes either way, and clients have a second to see that they are over */
  cut(which: (connection: OpenConnection) => boolean, reason: string): void
  /**
   * Resolves when the clients of connections that ended with a call have seen it, or had 0.1 s to; null where there are none.
   * Who asks them for more before that may have them use one that they believe to be open.
   */
  parted(): Promise<void> | null
}

/** What `openDoor` of egress/door.ts takes beside the policy. */
export interface DoorOptions {
  readonly watch: EgressWatch
  /** Null where no host carries a credential */
  readonly interceptor: Interceptor | null
  /** Null where nobody minds what goes up */
  readonly screen: Screen | null
  /** Where the socket is made; its folder is made too, 0700 or, for another uid, searchable and no more */
  readonly path: string
  /** Host uid of the sandbox: it alone may connect */
  readonly uid: number
}

/** Ports on which TLS is spoken from the first byte: what `tls: auto` takes for true. */
export const tlsPorts: ReadonlySet<number> = new Set([
  443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 2376, 5061, 5671, 6443, 6697, 8443, 8883, 9443,
])
