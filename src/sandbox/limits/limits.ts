// The limits of one sandbox: what holds from outside, what init sets inside, and which of them holds what.
import type { Order } from '../control/control.ts'
import type { LimitSupport } from './enforcement.ts'
import type { Limits, SandboxSpec } from '../spec.ts'

/** What holds a sandbox from outside. Disposing it removes its cgroups, and succeeds only once they are empty. */
export interface OuterLimits extends AsyncDisposable {
  /** Every file to which the launcher must write `0`, which joins a cgroup */
  readonly joinFiles: readonly string[]
  /** Watches the tree below PID 1 from now on; calls `runOut` once at most, when its memory is used up */
  watch(initPid: number, runOut: () => void): void
  /** True when the kernel or the watchdog found the memory used up */
  hasRunOut(): boolean
}

/** A limit of `setrlimit` or a counter of `/proc/sys/user`, set by init for the server. */
export type InnerLimit = Extract<Order, { type: 'limit' | 'counter' }>

// Numbers of prlimit(2), the same on x64 and arm64.
const resources = {
  fsize: 1,
  core: 4,
  nproc: 6,
  nofile: 7,
  memlock: 8,
  sigpending: 11,
  msgqueue: 12,
} as const

/** The limits that are held for a spec: its own, and room for the relay and init's two threads where the network is an allowlist. */
export const limitsWithRelay = ({ limits, network }: Pick<SandboxSpec, 'limits' | 'network'>): Limits =>
  network.mode === 'none' ? limits : { ...limits, pids: limits.pids + 3 }

/**
 * Returns what init sets for the server, none of which the server can raise.
 *
 * Processes only where the kernel counts them in the sandbox's own user namespace (Linux 5.14): else the limit would count
 * the user's processes on the whole machine. Not the address space: Node reserves more than any useful bound. Not the data segment: below 64 MiB Node hangs instead of failing.
 */
export const innerLimits = (
  limits: Limits,
  { nprocPerNamespace }: Pick<LimitSupport, 'nprocPerNamespace'>,
): readonly InnerLimit[] => [
  rlimit(resources.core, 0),
  rlimit(resources.fsize, limits.fileBytes),
  rlimit(resources.nofile, limits.openFiles),
  // init counts too.
  ...(nprocPerNamespace ? [rlimit(resources.nproc, limits.pids + 1)] : []),
  rlimit(resources.memlock, 65_536),
  rlimit(resources.sigpending, 1_024),
  rlimit(resources.msgqueue, 0),
  ...['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'time'].map((kind) =>
    counter(`max_${kind}_namespaces`, 0),
  ),
  // Enough for a file watcher on a project, too few to pin the kernel's memory, or to take all 128 that a user mostly has.
  counter('max_inotify_instances', 64),
  counter('max_inotify_watches', 65_536),
]

const rlimit = (resource: number, value: number): InnerLimit => ({
  type: 'limit',
  resource,
  soft: BigInt(value),
  hard: BigInt(value),
})

const counter = (name: string, value: number): InnerLimit => ({ type: 'counter', name, value: BigInt(value) })
