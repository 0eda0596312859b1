// Config and profile after loading: every default filled in, every path absolute, nothing optional.
// The JSON Schemas beside this file describe what people write; config/load.ts turns one into the other.
import type { StatedAssertion } from './assertion.ts'
import type { CredentialSource, Injection } from './credentials.ts'
import type { EgressGrant } from './egress.ts'

export interface Settings {
  /** The files that were read, highest scope first */
  readonly sources: readonly ConfigSource[]
  readonly allowedCommands: readonly AllowedCommand[]
  readonly commandPath: readonly string[]
  readonly interpreterOptions: Readonly<Record<string, readonly string[]>>
  readonly maxDynamicServers: number
  readonly startup: { readonly concurrency: number }
  /** Memory of all sandboxes that wait for calls, bytes */
  readonly pool: { readonly memoryBytes: number }
  readonly requireSeparation: boolean
  readonly hostGroup: string | null
  readonly mode: string
  /** What confines a server whose entry does not say */
  readonly driver: ServerSettings['driver']
  /** Name -> where the secret comes from */
  readonly credentials: Readonly<Record<string, CredentialSource>>
  readonly servers: ReadonlyMap<string, ServerSettings>
  /** Every profile that a server names, resolved */
  readonly profiles: ReadonlyMap<string, ProfileSettings>
  readonly rules: readonly Rule[]
  readonly tools: {
    readonly naming: '<server>_<tool>' | 'mcp__<server>__<tool>' | '<server>:<tool>'
    readonly descriptionList: number
    readonly descriptionFull: number
    readonly perServer: number
    /** Tools above which the list shows the search instead of all */
    readonly searchThreshold: number
    readonly searchMatches: number
  }
  /** What a server that a host launches gets */
  readonly dynamic: {
    readonly enabled: boolean
    /** Most that all hosts together have launched; of one it is `maxDynamicServers` */
    readonly inAll: number
    readonly profile: string
    readonly trust: ServerSettings['trust']
    readonly acceptance: ServerSettings['acceptance']
    readonly allow: readonly string[]
  }
  readonly approval: { readonly waitMs: number; readonly ttlMs: number }
  readonly permit: { readonly ttlMs: number }
  readonly trust: {
    readonly provisionalAfter: number
    readonly trustedAfter: number
    /** What a violation resets: the tool, or every tool of its server */
    readonly contaminate: 'tool' | 'server'
  }
  readonly journal: {
    readonly durability: 'write' | 'fsync'
    readonly segmentBytes: number
    /** Largest request or response that a record holds whole */
    readonly evidenceBytes: number
    /** Days after which a segment is let go of; 0 for never */
    readonly keepDays: number
  }
  /** What the operator should know and nothing refuses: shadowed entries, exposed servers; one line each */
  readonly warnings: readonly string[]
}

/** `registered` and `dynamic` are no files: an operator added the server, or a host launched it */
export type Scope = 'enterprise' | 'user' | 'project' | 'file' | 'registered' | 'dynamic'

export interface ConfigSource {
  readonly scope: Scope
  readonly path: string
}

export interface AllowedCommand {
  readonly name: string
  /** Absolute path, or null when the name is looked up in commandPath */
  readonly path: string | null
  /** What the file is, where neither its name nor its content tells: an interpreter's name, or `none` to overrule */
  readonly interpreter: string | null
}

export type Action = 'allow' | 'ask' | 'deny'

export interface Rule {
  /** `mcp:<server>:<tool>` or `mcp:<server>:<method>`, globs allowed */
  readonly permission: string
  readonly action: Action
  /** JSON pointer into the arguments, in which `*` is every element of a list -> glob */
  readonly where: Readonly<Record<string, string>>
  /** File and rule index, as shown to people: `sallyport.yaml rules[2]` */
  readonly origin: string
}

export interface ServerSettings {
  readonly name: string
  readonly scope: Scope
  /** File that declares it, as shown to people: `sallyport.yaml` */
  readonly file: string
  /** Folder of the file that declares it; relative paths were resolved against it */
  readonly directory: string
  readonly command: string
  readonly args: readonly string[]
  readonly package: PackageSettings | null
  readonly version: string
  /** False when the entry says so, or when its tags do not name the deployment mode */
  readonly enabled: boolean
  /** Why it is not enabled, in one line; null when it is */
  readonly disabledReason: string | null
  readonly tags: readonly string[]
  readonly justification: string
  readonly profile: string
  /** What confines it */
  readonly driver: 'bubblewrap' | 'docker'
  /** Image of the docker driver, in which the command is; null takes the command and its runtime from this machine */
  readonly image: string | null
  /** OCI runtime of the docker driver; null takes the engine's own choice */
  readonly runtime: string | null
  readonly mounts: readonly MountSettings[]
  readonly env: Readonly<Record<string, string>>
  /** Names in env that an override lets through although their family is refused, with the reason */
  readonly envOverride: Readonly<Record<string, string>>
  readonly cwd: string | null
  /** Hosts that it may connect to; no two name one host and port */
  readonly egress: readonly EgressGrant[]
  /** Whether the doors stand open always, or only while a call is in flight */
  readonly egressWhen: 'always' | 'calling'
  /** Credentials that its calls may use */
  readonly credentials: readonly Injection[]
  /** One process for each session, or one for each call */
  readonly instance: 'session' | 'call' | 'shared'
  /** Calls of tools that a process of it works on at once, or where each has its own, that a principal has there at once; null for what is usual */
  readonly maxConcurrent: number | null
  /** Sandboxes that wait for its calls, where each has a process of its own */
  readonly pool: { readonly size: number; readonly ageMs: number }
  readonly trust: 'trusted' | 'untrusted' | 'sandboxed'
  readonly surface: 'static' | 'dynamic'
  /** Who accepts what it lists: the operator, or the operator's standing word at first sight */
  readonly acceptance: 'manual' | 'first-use'
  /** What the operator declares of its tools, by name, or null where nothing is declared ahead */
  readonly declaration: Readonly<Record<string, DeclaredTool>> | null
  /** The version that it says it is, by its declaration; null for whatever it says */
  readonly declaredVersion: string | null
  readonly tools: {
    readonly allow: readonly string[]
    readonly deny: readonly string[]
    readonly readOnly: readonly string[]
  }
  readonly start: 'lazy' | 'eager'
  readonly elicitation: { readonly enabled: boolean; readonly timeoutMs: number; readonly queue: number }
  readonly sampling: boolean
  readonly roots: 'mounts' | 'none'
  readonly output: { readonly resultBytes: number; readonly lineBytes: number; readonly stderrBytes: number }
  readonly timeouts: { readonly initializeMs: number; readonly callMs: number; readonly idleMs: number }
  readonly stop: { readonly eofMs: number; readonly termMs: number }
  readonly restart: {
    readonly scheduleS: readonly number[]
    readonly jitter: number
    readonly steadyS: number
    readonly startAttempts: number
    readonly storm: number
  }
  /** Host uid to run as when the daemon is root; null gives the sandbox a uid of its own */
  readonly runAs: number | null
  /** Features asked for that this version cannot enforce, e.g. `egress`; a launch is refused with MP-FH-007 */
  readonly unenforceable: readonly string[]
}

/** One tool as the operator declares it: nine fields, and the surface that they were written for. */
export interface DeclaredTool {
  readonly name: string
  readonly version: string
  readonly parameters: unknown
  readonly sideEffects: readonly ('read' | 'write' | 'execute' | 'network' | 'secret-access' | 'other')[]
  readonly resourceScopes: readonly string[]
  readonly credentials: readonly string[]
  readonly output: unknown
  readonly idempotency: 'idempotent' | 'non-idempotent' | 'unknown'
  readonly failureModes: readonly string[]
  /** Digest of the tool object that it was drafted from, or null where the file does not say */
  readonly surfaceDigest: string | null
}

export interface PackageSettings {
  readonly source: string
  readonly target: string
  /** Further folders (absolute) that the code resolves from, e.g. node_modules */
  readonly with: readonly string[]
  /** Digest that the tree must have, or null to pin what is found at registration */
  readonly digest: string | null
}

export interface MountSettings {
  readonly source: string
  readonly target: string
  readonly access: 'read' | 'write'
  readonly reason: string
}

/** A profile with everything that it extends folded in. */
export interface ProfileSettings {
  readonly name: string
  readonly description: string
  readonly path: string
  /** This profile first, then what it extends */
  readonly layers: readonly string[]
  readonly filesystem: {
    readonly read: readonly Grant[]
    readonly write: readonly Grant[]
    readonly mounts: 'none' | 'read' | 'write'
    readonly tmpBytes: number
    readonly home: 'private'
  }
  readonly network: { readonly mode: 'none' | 'allowlist'; readonly allow: readonly NetworkGrant[] }
  readonly credentials: readonly string[]
  readonly exec: 'any' | 'none'
  readonly environment: {
    readonly pass: readonly string[]
    readonly set: Readonly<Record<string, string>>
    /** Names in pass and set that are let through although their family is refused, with the reason */
    readonly override: Readonly<Record<string, string>>
  }
  readonly syscalls: {
    readonly base: 'strict'
    readonly allow: readonly string[]
    readonly deny: readonly string[]
  }
  readonly limits: {
    readonly memoryBytes: number
    readonly pids: number
    readonly cpu: number
    readonly openFiles: number
    readonly fileBytes: number
    readonly enforcement: {
      readonly memory: 'required' | 'best-effort'
      readonly cpu: 'required' | 'best-effort'
      readonly pids: 'required' | 'best-effort'
      readonly files: 'required' | 'best-effort'
    }
  }
  /** What its own file says must hold; what it extends keeps its own */
  readonly assertions: readonly StatedAssertion[]
  /** Where each value was decided: a path such as `filesystem.read[0]` -> `offline.yaml:12` */
  readonly decidedAt: Readonly<Record<string, string>>
}

export interface Grant {
  readonly path: string
  readonly reason: string
}

export interface NetworkGrant {
  readonly host: string
  readonly port: number
  /** The literal address that the host has; null where a resolver is asked */
  readonly address: string | null
  /** Whether private, loopback and link-local addresses are allowed for the name */
  readonly private: boolean
  readonly reason: string
}
