// What a sandbox driver promises: a confined process waiting at the gate, then a server on three streams.
import type { Readable } from 'node:stream'
import type { SandboxSpec } from './spec.ts'

/** Which mechanism holds a limit on this launch; `none` only where the profile says best-effort. */
export type EnforcedBy =
  | 'cgroup-v2'
  | 'cgroup-v1'
  | 'rlimit'
  | 'user-counter'
  | 'watchdog'
  | 'tmpfs'
  | 'engine'
  | 'none'

export interface EnforcedLimits {
  readonly memory: EnforcedBy
  readonly pids: EnforcedBy
  readonly cpu: EnforcedBy
  readonly files: EnforcedBy
  readonly tmp: EnforcedBy
}

/** How a server's own process ended, and what the supervisor had done to it. */
export interface SandboxExit {
  /** Exit code of the server, or null when a signal ended it or it never started */
  readonly code: number | null
  /** Signal number that ended the server, or null */
  readonly signal: number | null
  /**
   * `exited` by itself or on EOF or SIGTERM; the rest say who ended it: `egress-lost` is PID 1, when the relay was gone,
   * `engine-lost` is the driver, when there was no engine any more to speak through
   */
  readonly reason:
    | 'exited'
    | 'killed'
    | 'oom'
    | 'sandbox-lost'
    | 'exec-failed'
    | 'egress-lost'
    | 'engine-lost'
}

/** A server's stdin as everything sees it but the dispatch: it can be brought to its end, and nothing can be said to it. */
export interface ServerInput {
  /** The server reads EOF */
  end(): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * A confined server. Whoever got it from `launch` owns it and must dispose of it; disposing kills.
 *
 * The streams are byte streams; nothing is buffered beyond the kernel's socket buffers and one chunk.
 */
export interface SandboxProcess extends AsyncDisposable {
  readonly spec: SandboxSpec
  readonly enforcedBy: EnforcedLimits
  /** Host pid of the sandbox's PID 1 */
  readonly initPid: number
  /** Processes that the server left to PID 1, as a daemon leaves its parent; null where that can't be seen */
  orphans(): number | null
  readonly stdin: ServerInput
  readonly stdout: Readable
  readonly stderr: Readable
  /** Sends SIGTERM to the server itself, never to the monitor */
  terminate(): void
  /** Kills the whole tree at once */
  kill(): void
  /** Lets go of it as a supervisor does that dies: its own PID 1 is to end it, within a second */
  abandon(): void
  /** Why it is being ended, from when that was decided; null before */
  readonly ending: () => SandboxExit['reason'] | null
  /** Whether somebody has paused its container: it answers nothing until it goes on */
  isPaused(): boolean
  /** Resolves once nothing is left: processes, cgroups, mounts. Never rejects */
  readonly ended: Promise<SandboxExit>
}
