// From the spec to bubblewrap's arguments: pure, in the order in which bubblewrap builds the sandbox.
import { credentialFolder, type Limits, type Mount, mountsOf, type SandboxSpec } from '../spec.ts'

/** An argument, or bytes that the launcher puts into a sealed memfd, whose number is then the argument. */
export type BubblewrapArgument = string | { readonly data: Uint8Array }

/** What the host adds to a spec. */
export interface BubblewrapHost {
  /** Where bubblewrap finds a mount's source: the source itself, or the place where the launcher staged it */
  readonly stagedSource: (mount: Mount) => string
  /** Where bubblewrap finds the sallyport-init binary */
  readonly initPath: string
  /** The system-call filter, as a classic BPF program */
  readonly seccomp: Uint8Array
}

/** Where init itself is in every sandbox. */
export const initTarget = '/sallyport/init'

/** What bubblewrap executes, after its arguments. */
export const initCommand = [initTarget, 'init'] as const

/** Uid and gid that the server sees as its own, whatever the host's are. */
export const sandboxUid = 1000

/** Folders in memory that each sandbox has to itself. */
export const scratchFolders = ['/tmp', '/home/user', '/dev/shm'] as const

/** The devices of every sandbox, and the names that lead to a process's own streams. */
export const deviceNodes = ['null', 'zero', 'full', 'random', 'urandom'] as const
export const deviceLinks = [
  { path: '/dev/fd', text: '/proc/self/fd' },
  { path: '/dev/stdin', text: '/proc/self/fd/0' },
  { path: '/dev/stdout', text: '/proc/self/fd/1' },
  { path: '/dev/stderr', text: '/proc/self/fd/2' },
] as const

/**
 * Returns the options for one launch, without the command, which is `initCommand`.
 *
 * 1. identity: own namespaces, one mapped uid, no capability but those that init drops after it has used them
 * 2. proc: a new one, the host's switches read-only; the rest of the host's facts is covered when all of this stands, by the launcher
 * 3. dev: five nodes, nothing else
 * 4. scratch: sized /tmp, home and /dev/shm, and where the server gets secret files a folder for them, gone with the sandbox
 * 5. files: what the supervisor writes into /etc
 * 6. mounts: the runtime, the code and what the server was given, in the spec's order, and the root's links
 * 7. seal: the root becomes read-only, and only then init appears, so that arguments that end early start nothing
 */
export const bubblewrapArguments = (
  spec: SandboxSpec,
  host: BubblewrapHost,
): readonly BubblewrapArgument[] => [
  ...identity(spec, host),
  ...proc,
  ...dev(spec),
  ...scratch(spec.limits, '/tmp'),
  ...scratch(spec.limits, '/home/user'),
  ...(spec.hasCredentialFiles ? tmpfs(1_048_576, '0700', credentialFolder) : []),
  ...spec.files.flatMap(({ target, content, mode }) => file(target, content, mode)),
  ...mountsOf(spec).flatMap((mount) => bind(mount, host)),
  ...spec.links.flatMap(({ path, text }) => ['--symlink', text, path]),
  ...seal(host),
]

// A route for every address, ports below 1024, and the socket that sees what was refused.
const networkCapabilities = ['CAP_NET_ADMIN', 'CAP_NET_BIND_SERVICE', 'CAP_NET_RAW']

// No --dev, --disable-userns: both nest a second user namespace, in which init could not set the counters that
// close user namespaces for good. No --die-with-parent: it is a race; init ends when its control channel does.
const identity = ({ network }: SandboxSpec, { seccomp }: BubblewrapHost): BubblewrapArgument[] =>
  [
    [
      '--unshare-user',
      '--unshare-pid',
      '--unshare-ipc',
      '--unshare-uts',
      '--unshare-cgroup',
      '--unshare-net',
    ],
    ['--uid', `${sandboxUid}`, '--gid', `${sandboxUid}`],
    ['--as-pid-1', '--new-session'],
    // Started by uid 0, bubblewrap would keep all; CAP_SYS_RESOURCE is what writing /proc/sys/user/max_* takes.
    ['--cap-drop', 'ALL', '--cap-add', 'CAP_SYS_RESOURCE', '--cap-add', 'CAP_SETPCAP'],
    network.mode === 'none' ? [] : networkCapabilities.flatMap((name) => ['--cap-add', name]),
    ['--hostname', 'sandbox', '--clearenv'],
    ['--seccomp', { data: seccomp }],
  ].flat()

// bubblewrap covers /proc/sys only where access(W_OK) says that it could be written, which the kernel denies even to
// root: so it is covered here. The counters below /proc/sys/user belong to the sandbox's own user namespace.
const proc = [
  ['--proc', '/proc'],
  ['--ro-bind', '/proc/sys', '/proc/sys'],
  ['--bind', '/proc/sys/user', '/proc/sys/user'],
].flat()

const dev = ({ limits }: SandboxSpec): string[] =>
  [
    tmpfs(65_536, '0755', '/dev'),
    ...deviceNodes.map((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    ...deviceLinks.map(({ path, text }) => ['--symlink', text, path]),
    scratch(limits, '/dev/shm'),
    ['--remount-ro', '/dev'],
  ].flat()

const scratch = ({ tmpBytes }: Limits, path: string): string[] => tmpfs(tmpBytes, '0700', path)

const tmpfs = (bytes: number, mode: string, path: string): string[] => {
  return ['--size', `${bytes}`, '--perms', mode, '--tmpfs', path]
}

const file = (target: string, content: string, mode: number): BubblewrapArgument[] => {
  return ['--perms', mode.toString(8).padStart(4, '0'), '--file', { data: Buffer.from(content) }, target]
}

// bubblewrap adds nosuid and nodev to every bind by itself.
const bind = (mount: Mount, { stagedSource }: BubblewrapHost): string[] => {
  return [mount.access === 'write' ? '--bind' : '--ro-bind', stagedSource(mount), mount.target]
}

const seal = ({ initPath }: BubblewrapHost): BubblewrapArgument[] =>
  [file(initTarget, '', 0), ['--remount-ro', '/'], ['--ro-bind', initPath, initTarget]].flat()
