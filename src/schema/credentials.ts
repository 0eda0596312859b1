// What the broker of secrets, the interceptor that swaps them and whoever composes both agree on.
import type { InstanceId } from '../lib/ids.ts'
import type { EgressEndpoint, Screen } from './egress.ts'

/** Where a secret comes from. */
export type CredentialSource =
  | { readonly kind: 'env'; readonly variable: string }
  | { readonly kind: 'file'; readonly path: string }
  /** Absolute program, no shell, empty environment, never root */
  | { readonly kind: 'command'; readonly argv: readonly string[] }

export type InjectionKind = 'egress' | 'meta' | 'file' | 'env'

/** A host and port that carries a credential. */
export interface InjectionHost extends EgressEndpoint {
  /** File of certificates, absolute, that verify this host instead of the system's roots; or null */
  readonly caFile: string | null
}

/** One entry of a server's `credentials`. */
export interface Injection {
  /** Name of the credential */
  readonly use: string
  readonly inject: InjectionKind
  /** The variable that holds the placeholder, the value or the file's path; for `meta` the field of the request */
  readonly as: string
  /** For `egress`: where the placeholder is swapped. No wildcards */
  readonly hosts: readonly InjectionHost[]
  /** For `egress`: lower-case names of the headers in which it is swapped, decoded Basic included for `authorization` */
  readonly headers: readonly string[]
  /** For `egress`: whether it is swapped in the request's query, in its body, and whether upgrades to websocket pass */
  readonly query: boolean
  readonly body: boolean
  readonly websocket: boolean
  readonly placeholder: { readonly prefix: string; readonly length: number }
}

/** `call`: this call's process alone had it. `window`: the process had it, and these calls were in flight. */
export type Attribution = 'call' | 'window'

/** What a lease is for. */
export interface LeaseRequest {
  readonly permit: string
  readonly call: string
  /** Credentials that the tool's declaration names and the server's entry injects */
  readonly names: readonly string[]
  /** Life at most, ms */
  readonly deadlineMs: number
  readonly attribution: Attribution
}

/** A secret file for the sandbox's private memory file system; mode 0400. */
export interface SecretFile {
  readonly name: string
  readonly content: Uint8Array
}

/** Secrets of one permit, until `end` or the deadline, whichever is first. Disposing ends it. */
export interface Lease extends Disposable {
  readonly permit: string
  readonly names: readonly string[]
  /** Whether a value enters the sandbox: any way but `egress` */
  readonly exposed: boolean
  readonly attribution: Attribution
  /** Members of `_meta["sallyport/credentials"]`, or null where none is injected that way */
  meta(): Readonly<Record<string, string>> | null
  /** Variables with values, for `env`, as they go through the gate */
  environment(): Readonly<Record<string, string>>
  /** Files for `file`; the variable `as` holds the path */
  files(): readonly (SecretFile & { readonly variable: string })[]
  /** Aborts when the lease is over */
  readonly ended: AbortSignal
  end(): void
}

/** A placeholder that was seen where or when it stands for nothing. */
export interface CredentialViolation {
  /** Null where it is another server's */
  readonly credential: string | null
  readonly host: string
  readonly port: number
  /**
   * `no-lease`: right place, no call that may use it; `dead`: the same of a process of this server that has ended;
   * `other-host`, `other-place`: not where the entry says; `other-sandbox`: given to another process; `value`: the secret
   * itself went up, which the sandbox was never given
   */
  readonly reason: 'no-lease' | 'dead' | 'other-host' | 'other-place' | 'other-sandbox' | 'value'
  /** Null where it was found without reading a request, or in a sandbox that does not have it */
  readonly place: SwapPlace | null
}

/** Where in a request a placeholder stands. */
export type SwapPlace =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'basic' }
  | { readonly in: 'query' }
  | { readonly in: 'body' }
  /** The request line beyond the query, a trailer, anything else: never swapped */
  | { readonly in: 'elsewhere' }

export type Swap =
  | {
      readonly state: 'live'
      readonly credential: string
      readonly value: string
      /** Aborts when the lease ends: the connection is cut then */
      readonly until: AbortSignal
    }
  | { readonly state: 'blocked'; readonly credential: string; readonly reason: CredentialViolation['reason'] }

/**
 * Looks at what goes up, chunk by chunk: says why the stream must go no further with this one, or null. Who is to know of it
 * was told then.
 */
export type LeakWatch = (chunk: Uint8Array) => CredentialViolation['reason'] | null

/** What the interceptor asks of one sandbox's secrets. Every block is told to the broker's `violated` by this. */
export interface SwapPort {
  readonly injections: readonly Injection[]
  /** Every placeholder of this sandbox, live or dead, for scanners */
  readonly placeholders: readonly string[]
  swap(placeholder: string, target: EgressEndpoint, place: SwapPlace): Swap
  /**
   * One for each stream that goes up: finds values, in any of their encodings, that the sandbox was not given, and
   * placeholders of other sandboxes, as they are or in base64; its own as well where they count
   */
  watch(target: EgressEndpoint, own: 'passes' | 'counts'): LeakWatch
}

/** Takes secrets out of a stream; holds back what may be the beginning of one. */
export interface RedactingStream {
  /** The part that is safe to pass on */
  push(chunk: Uint8Array): Uint8Array
  /** What was held back, at the end */
  flush(): Uint8Array
  /** Names of the credentials found so far */
  readonly found: ReadonlySet<string>
}

/** One that can say what it holds back before it knows all, where a message ends and another may follow. */
export interface MaskingStream extends RedactingStream {
  /**
   * What was held back. Of what may be the beginning of a secret, more than a few letters are taken out; how it goes on is
   * looked for in what is pushed next.
   */
  settle(): Uint8Array
}

/** Knows the values of open and recent leases in all their encodings. A sandbox without secrets costs nothing. */
export interface Redactor {
  /** The text with every hit replaced by `[redacted:<credential>]`, and what was hit */
  redact(text: string): { readonly text: string; readonly found: readonly string[] }
  stream(): RedactingStream
  /** Like `stream`, but each hit becomes as many asterisks: what says how long a body is stays true */
  mask(): MaskingStream
}

/** The secrets of one sandbox. Disposing kills its placeholders for good and ends its leases. */
export interface SandboxSecrets extends Disposable {
  /** Variables with placeholders, for `egress` */
  readonly environment: Readonly<Record<string, string>>
  readonly swap: SwapPort
  /** For what nobody swaps in: finds its own placeholders there, too */
  readonly screen: Screen
  readonly redactor: Redactor
  /**
   * Reads the sources; rejects with ERR_CREDENTIAL_… when one fails. Where another lease holds a different secret for
   * one of the targets it waits for that one's end, or rejects when the signal aborts.
   */
  lease(request: LeaseRequest, waiting: { readonly signal: AbortSignal }): Promise<Lease>
  /** What the sandbox was for is done: to others its placeholders are dead from now on, however long its process takes to end */
  retire(): void
}

export interface SandboxSecretsRequest {
  readonly server: string
  readonly instance: InstanceId
  readonly injections: readonly Injection[]
  /** Told at once, before the blocked request is answered; must not throw */
  readonly violated: (violation: CredentialViolation) => void
}

/** The one holder of secrets: `createBroker` of credentials/broker.ts. */
export interface Broker {
  /**
   * Reads each source once and drops the value; rejects with ERR_CREDENTIAL_… naming those that fail, or whose value
   * can't be injected as it is to be
   */
  probe(
    injections: readonly Pick<Injection, 'use' | 'inject'>[],
    waiting: { readonly signal: AbortSignal },
  ): Promise<void>
  forSandbox(request: SandboxSecretsRequest): SandboxSecrets
  /** Over every sandbox: for logs, journal and events */
  readonly redactor: Redactor
}

/** What `createBroker` takes. */
export interface BrokerOptions {
  readonly sources: Readonly<Record<string, CredentialSource>>
  /** The daemon's own environment; of it only variables that a source names are read */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The daemon's uid: files of secrets must be its own or root's, and nobody else's to read */
  readonly uid: number
  /** sallyport-init, which keeps commands: none outlives the daemon */
  readonly initPath: string
}

/** What an interceptor is made of; `createInterceptor` of egress/intercept/ also returns the certificate that signs. */
export interface InterceptorOptions {
  readonly server: string
  readonly instance: InstanceId
  /** Whether its sandbox ends with one call, or may live as long as a session does */
  readonly life: 'call' | 'session'
  readonly swap: SwapPort
  readonly redactor: Redactor
}

/** A sandbox's own authority, in memory. */
export interface InterceptorAuthority {
  /** Its certificate as PEM, for the sandbox's bundle */
  readonly certificate: string
  /** The machine's roots and that certificate, as PEM: what a client in the sandbox may trust */
  readonly bundle: string
}
