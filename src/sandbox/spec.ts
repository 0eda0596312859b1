// What a launch confines: absolute, fully defaulted, frozen. Both drivers take it, and nothing else.
import type { InstanceId } from '../lib/ids.ts'
import type { EgressEndpoint } from '../schema/egress.ts'

/** A host file or folder that appears in the sandbox. */
export interface Mount {
  /** Real absolute host path, symlinks resolved */
  readonly source: string
  /** Absolute path in the sandbox */
  readonly target: string
  readonly access: 'read' | 'write'
  readonly kind: 'file' | 'directory' | 'socket'
  /** Device of the source when the plan was made; init must report the same */
  readonly dev: bigint
  /** Inode of the source when the plan was made; init must report the same */
  readonly ino: bigint
  /** Why the server has it, from the profile or the server's entry */
  readonly reason: string
  readonly origin: 'runtime' | 'profile' | 'server' | 'package' | 'program' | 'protected' | 'supervisor'
}

/** A symbolic link of the sandbox's root, such as /bin -> usr/bin, as the host has it. */
export interface Link {
  readonly path: string
  /** The link's text, relative to its folder */
  readonly text: string
}

/** A small file whose content the supervisor writes into the sandbox before anything runs. */
export interface DataFile {
  readonly target: string
  readonly content: string
  readonly mode: number
}

/** Where secret files are in a sandbox that has some. */
export const credentialFolder = '/sallyport/credentials'

/** How firmly a limit must hold. */
export type Enforcement = 'required' | 'best-effort'

export interface Limits {
  readonly memoryBytes: number
  readonly pids: number
  /** Cores, 0.5 is half of one */
  readonly cpu: number
  readonly openFiles: number
  /** Largest file that the server can write, bytes */
  readonly fileBytes: number
  /** Size of /tmp, of the home and of /dev/shm, bytes for each */
  readonly tmpBytes: number
  readonly enforcement: {
    readonly memory: Enforcement
    readonly cpu: Enforcement
    readonly pids: Enforcement
    readonly files: Enforcement
  }
}

export interface SyscallPolicy {
  readonly base: 'strict'
  /** Names allowed beyond the base */
  readonly allow: readonly string[]
  /** Names refused although the base allows them */
  readonly deny: readonly string[]
}

/** What a variable is there for, so that `show` and the records can say it. */
export interface Variable {
  readonly value: string
  readonly origin: 'base' | 'pass' | 'profile' | 'server' | 'supervisor'
}

/** What of the world the sandbox sees: nothing, or names that lead to one socket. */
export type Network =
  | { readonly mode: 'none' }
  | {
      readonly mode: 'allowlist'
      /** The socket behind which the supervisor's proxy judges again; `doorTarget` inside */
      readonly door: Mount
      /** Names, each exact or `*.name`, and ports; no pair twice */
      readonly grants: readonly EgressEndpoint[]
      /** Port on 127.0.0.1 for programs that ask for an HTTP proxy */
      readonly proxyPort: number
      /** Addresses for names that a wildcard matches; 256 at most */
      readonly pool: number
    }

/** Where the door is in every sandbox that has one. */
export const doorTarget = '/sallyport/egress'

export interface SandboxSpec {
  readonly server: string
  readonly instance: InstanceId
  readonly profile: string
  /** The server's executable as the sandbox sees it, and its argv (argv[0] first) */
  readonly program: { readonly path: string; readonly argv: readonly string[] }
  readonly cwd: string
  readonly environment: Readonly<Record<string, Variable>>
  /** Host ids under which the sandbox tool starts; never 0 */
  readonly hostUid: number
  readonly hostGid: number
  /** Parents before what lies in them; `protected` ones last */
  readonly mounts: readonly Mount[]
  readonly links: readonly Link[]
  readonly files: readonly DataFile[]
  readonly network: Network
  /** Whether there is a folder for secret files, `credentialFolder`, in memory and of its own */
  readonly hasCredentialFiles: boolean
  readonly exec: 'any' | 'none'
  readonly syscalls: SyscallPolicy
  readonly limits: Limits
  readonly stop: { readonly eofMs: number; readonly termMs: number }
}

/** Everything of the host that appears in the sandbox, the door last. */
export const mountsOf = ({ mounts, network }: Pick<SandboxSpec, 'mounts' | 'network'>): readonly Mount[] =>
  network.mode === 'none' ? mounts : [...mounts, network.door]
