// What the kernel and whoever started us allow, read from /proc: the reasons behind a sandbox that can't be built.
import { existsSync, readFileSync } from 'node:fs'
import { release } from 'node:os'

/** Facts of this host that decide what a sandbox can hold. */
export interface KernelFacts {
  /** As in uname(2) */
  readonly release: string
  readonly uid: number
  /** Whether `/proc/sys` is there, which says the most of what follows: it is not where `/proc` is mounted with `subset=pid` */
  readonly procSys: boolean
  /** Switches that forbid user namespaces to ordinary users; null where the kernel has no such switch */
  readonly unprivilegedUserns: number | null
  readonly appArmorRestrictsUserns: number | null
  readonly maxUserNamespaces: number | null
  /** Whether filters can end a process, which the filter for foreign architectures takes */
  readonly seccompKills: boolean
  /** Of the capabilities that root needs to drop ids and stage mounts, those that we lack; empty where we are not root */
  readonly missingCapabilities: readonly string[]
  /** Whether a container engine seems to have started us */
  readonly inContainer: boolean
  /** Whether RLIMIT_NPROC counts per user namespace (Linux 5.14) */
  readonly nprocPerNamespace: boolean
  /** Whether `/proc` lists the children of a process */
  readonly processTree: boolean
}

const rootNeeds = { CAP_SETGID: 6, CAP_SETUID: 7, CAP_SETPCAP: 8, CAP_SYS_ADMIN: 21 } as const

/** Reads them all; a file that is not there says that the kernel has no such switch. */
export function readKernelFacts(): KernelFacts {
  const uid = process.geteuid?.() ?? -1
  const [major = 0, minor = 0] = release().split('.').map(Number)
  return {
    release: release(),
    uid,
    procSys: existsSync('/proc/sys/kernel'),
    unprivilegedUserns: number('/proc/sys/kernel/unprivileged_userns_clone'),
    appArmorRestrictsUserns: number('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
    maxUserNamespaces: number('/proc/sys/user/max_user_namespaces'),
    seccompKills: text('/proc/sys/kernel/seccomp/actions_avail').split(/\s+/).includes('kill_process'),
    missingCapabilities: uid === 0 ? missingCapabilities() : [],
    inContainer: existsSync('/.dockerenv') || existsSync('/run/.containerenv'),
    nprocPerNamespace: major > 5 || (major === 5 && minor >= 14),
    processTree: existsSync(`/proc/self/task/${process.pid}/children`),
  }
}

function missingCapabilities(): readonly string[] {
  const effective = BigInt(`0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(text('/proc/self/status'))?.[1] ?? '0'}`)
  return Object.entries(rootNeeds).flatMap(([name, bit]) => ((effective >> BigInt(bit)) & 1n ? [] : [name]))
}

function number(file: string): number | null {
  const found = text(file).trim()
  return found === '' ? null : Number(found)
}

function text(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
