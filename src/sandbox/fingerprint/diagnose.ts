// What a fingerprint means: for each control, what enforces it here, or why nothing does and the command that mends it.
import { SallyportError } from '../../errors.ts'
import { type Control, controls } from '../cgroup/level.ts'
import { bestEnforcement } from '../limits/enforcement.ts'
import type { Fingerprint } from './fingerprint.ts'
import type { KernelFacts } from './kernel-facts.ts'
import type { Trial } from './trial.ts'

/** One line of `sallyport doctor`. */
export interface Diagnosis {
  readonly control:
    | 'init'
    | 'bubblewrap'
    | 'user namespaces'
    | 'system calls'
    | 'sandbox'
    | 'egress'
    | 'datagrams'
    | 'memory'
    | 'pids'
    | 'cpu'
    | 'container engine'
    | 'containers'
    | 'container limits'
    | 'gVisor'
  readonly ok: boolean
  /** Whether nothing can be launched while this is not ok */
  readonly isFatal: boolean
  /** The mechanism, with its version or level; null where there is none */
  readonly enforcedBy: string | null
  readonly cause: string | null
  readonly mend: string | null
}

type Fault = Pick<Diagnosis, 'cause' | 'mend'>

/** Explains a fingerprint: one row for each control, those that a launch can't do without first. Pure. */
export function diagnose(found: Fingerprint): readonly Diagnosis[] {
  const { kernel, bubblewrap, init, trial } = found
  return [
    fatal('init', init.path, init.path === null ? { cause: init.cause, mend: 'npm run setup' } : null),
    fatal(
      'bubblewrap',
      bubblewrap === null ? null : `${bubblewrap.path} ${bubblewrap.version}`,
      bubblewrap === null
        ? { cause: 'bwrap is not installed', mend: 'as root: apt-get install bubblewrap' }
        : bubblewrap.refusal,
    ),
    fatal(
      'user namespaces',
      `kernel ${kernel.release}`,
      trial?.works === true ? null : namespaceFault(kernel),
    ),
    fatal('system calls', 'seccomp', seccompFault(kernel)),
    fatal(
      'sandbox',
      trial?.works === true ? `tried in ${Math.ceil(trial.tookMs)} ms` : null,
      trialFault(found),
    ),
    egressRow(found),
    ...datagramRows(found),
    ...limitRows(found),
  ]
}

/**
 * Returns the programs that a sandbox of bubblewrap takes, where this host can confine a server in one.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE for the first control that is missing and that no such launch can do without, or ERR_SHORTAGE
 * where there was not enough to try it with.
 */
export function requireSandbox(found: Fingerprint): { readonly initPath: string; readonly toolPath: string } {
  expectTried(found.trial)
  const missing = diagnose(found).find(({ ok, isFatal }) => isFatal && !ok)
  const { bubblewrap, init } = found
  if (missing === undefined && bubblewrap !== null && init.path !== null)
    return { initPath: init.path, toolPath: bubblewrap.path }
  throw unconfined(missing)
}

/** What a trial had not enough for says nothing of this host. */
function expectTried(trial: Trial | null): void {
  if (trial?.works === false && trial.shortage !== undefined) throw trial.shortage
}

/** What a container needs of this host beside its engine. Throws ERR_SANDBOX_UNENFORCEABLE where it is not there. */
export function requireInit(found: Fingerprint): { readonly initPath: string } {
  const missing = diagnose(found).find(
    ({ ok, isFatal, control }) => isFatal && !ok && !onlyBubblewrap.has(control),
  )
  if (found.init.path !== null && missing === undefined) return { initPath: found.init.path }
  throw unconfined(missing)
}

/** Controls that an engine makes for a container, whatever this host lets others make. */
export const onlyBubblewrap: ReadonlySet<Diagnosis['control']> = new Set([
  'bubblewrap',
  'user namespaces',
  'sandbox',
])

function unconfined(missing: Diagnosis | undefined): SallyportError {
  const { control = 'sandbox', cause = null, mend = null } = missing ?? {}
  return new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `this machine cannot confine a server: ${control}: ${cause ?? 'unknown'}; ${mend ?? 'run sallyport doctor'}`,
    { control, cause, mend },
  )
}

/**
 * Says that this host can give a sandbox an allowlist for a network.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE, with what the trial met, where it can't, or ERR_SHORTAGE as above.
 */
export function requireEgress(found: Fingerprint): void {
  expectTried(found.egressTrial)
  const { ok, control, cause, mend } = egressRow(found)
  if (ok) return
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `this machine cannot hold network.mode: allowlist: ${cause ?? 'unknown'}; ${mend ?? 'run sallyport doctor'}`,
    { control, cause, mend },
  )
}

// Not fatal: a server without a network needs none of it.
function egressRow({ trial, egressTrial }: Fingerprint): Diagnosis {
  const row = { control: 'egress', isFatal: false } as const
  if (egressTrial?.works === true)
    return {
      ...row,
      ok: true,
      enforcedBy: `tried in ${Math.ceil(egressTrial.tookMs)} ms`,
      cause: null,
      mend: null,
    }
  if (egressTrial === null)
    return {
      ...row,
      ok: false,
      enforcedBy: null,
      cause: trial?.works === true ? 'it was not tried' : 'no sandbox can be built',
      mend: 'mend what stands above',
    }
  const cause = egressTrial.stderr.trim().split('\n').at(-1) || egressTrial.message
  const mend = /packet socket|filter of refusals/.test(cause)
    ? 'boot a kernel with CONFIG_PACKET'
    : /descriptors/.test(cause)
      ? 'raise the hard limit of open files of the daemon (ulimit -Hn)'
      : /temporary folder/.test(cause)
        ? 'set TMPDIR to a folder with a short path that this user can write to'
        : 'see the line of init, and the kernel log'
  return { ...row, ok: false, enforcedBy: null, cause, mend }
}

/** Not a wall: what leads nowhere leads nowhere all the same, and is told; who sends it is not. */
function datagramRows({ egressTrial }: Fingerprint): readonly Diagnosis[] {
  if (egressTrial?.works !== true) return []
  const row = { control: 'datagrams', isFatal: false } as const
  if (egressTrial.status === 0)
    return [{ ...row, ok: true, enforcedBy: 'nf_tables', cause: null, mend: null }]
  return [
    {
      ...row,
      ok: false,
      enforcedBy: null,
      cause:
        'the kernel takes no nf_tables rules in a sandbox: what sends a datagram that leads nowhere waits for an answer that never comes',
      mend: 'as root: modprobe -a nf_tables nft_reject_ipv4 nft_reject_ipv6, or boot a kernel with CONFIG_NF_TABLES',
    },
  ]
}

function fatal(control: Diagnosis['control'], by: string | null, fault: Fault | null): Diagnosis {
  if (fault === null) return { control, ok: true, isFatal: true, enforcedBy: by, cause: null, mend: null }
  return { control, ok: false, isFatal: true, enforcedBy: null, ...fault }
}

/** Where this is not there nothing is known of the kernel, and bubblewrap builds nothing. */
const unseen: Fault = {
  cause: '/proc/sys is not there: /proc is not mounted, or with subset=pid',
  mend: 'start it where /proc is mounted whole',
}

function seccompFault({ procSys, seccompKills }: KernelFacts): Fault | null {
  if (!procSys) return unseen
  return seccompKills
    ? null
    : {
        cause: 'the kernel has no seccomp filters that kill',
        mend: 'boot Linux 4.14 or later with CONFIG_SECCOMP_FILTER',
      }
}

/** The switches that forbid namespaces to ordinary users; they matter only where the trial failed. */
function namespaceFault({ uid, ...kernel }: KernelFacts): Fault | null {
  if (!kernel.procSys) return unseen
  if (kernel.maxUserNamespaces === null)
    return { cause: 'the kernel has no user namespaces', mend: 'boot a kernel with CONFIG_USER_NS' }
  if (kernel.maxUserNamespaces === 0)
    return {
      cause: 'user.max_user_namespaces is 0',
      mend: 'as root: sysctl -w user.max_user_namespaces=15000',
    }
  if (kernel.unprivilegedUserns === 0)
    return {
      cause: 'kernel.unprivileged_userns_clone is 0',
      mend: 'as root: sysctl -w kernel.unprivileged_userns_clone=1',
    }
  if (kernel.appArmorRestrictsUserns === 1)
    return {
      cause: `AppArmor lets no unconfined program of uid ${uid} make a user namespace`,
      mend: `as root: printf 'abi <abi/4.0>,\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }\\n' > /etc/apparmor.d/bwrap && apparmor_parser -r /etc/apparmor.d/bwrap`,
    }
  return null
}

/** Reads what launcher, bubblewrap or init said when the trial failed. */
function trialFault({ trial, kernel }: Fingerprint): Fault | null {
  if (trial?.works === true) return null
  if (trial === null) return { cause: 'there was nothing to try it with', mend: 'mend what stands above' }
  if (!kernel.procSys) return unseen
  const said = trial.stderr.trim().split('\n').at(-1) || trial.message
  const privileges = kernel.missingCapabilities.join(', ')
  if (privileges !== '')
    return {
      cause: `root lacks ${privileges}: ${said}`,
      mend: 'run the daemon as an ordinary user, or give the container these capabilities (--cap-add)',
    }
  if (/setgroups|identity/.test(said))
    return {
      cause: `the daemon is root only of a user namespace, and can't become anybody else in it: ${said}`,
      mend: 'start the daemon as the ordinary user that it is outside',
    }
  if (/not a child of it/.test(said))
    return {
      cause: `/proc shows other processes than ours: ${said}`,
      mend: 'mount the /proc of the daemon’s own pid namespace',
    }
  if (/staging: \/tmp: No such|mount tmpfs: No such/.test(said))
    return { cause: `/tmp is not there: ${said}`, mend: 'as root: install -d -m 1777 /tmp' }
  if (/mount proc/i.test(said))
    return {
      cause: `a new /proc cannot be mounted, as in containers that mask theirs: ${said}`,
      mend: 'start the container with --security-opt systempaths=unconfined',
    }
  if (/namespace|keyring|uid map|Operation not permitted/i.test(said))
    return {
      cause: `namespaces are refused: ${said}`,
      mend: namespaceFault(kernel)?.mend ?? containerMend(kernel),
    }
  return { cause: said, mend: 'see the line of the launcher, and the kernel log' }
}

function containerMend({ inContainer }: KernelFacts): string {
  return inContainer
    ? 'start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined'
    : 'start it outside of a chroot, in which Linux makes none, or see the kernel log for who refused'
}

/** Limits are never fatal here: whether a launch needs one is its profile's word. */
function limitRows({ cgroups, kernel }: Fingerprint): readonly Diagnosis[] {
  const holds = bestEnforcement({ cgroups, ...kernel })
  return controls.map((control) => limitRow(control, holds[control], cgroups))
}

const limitRow = (control: Control, by: string, fault: Fault): Diagnosis => {
  const ok = by !== 'none' && by !== 'watchdog'
  const { cause, mend } = ok ? { cause: null, mend: null } : fault
  return { control, ok, isFatal: false, enforcedBy: by === 'none' ? null : by, cause, mend }
}

/**
 * The rows with what a running daemon holds limits by in its own group, in place of what one that is started here would: those that
 * differ say so. Pure.
 */
export const withDaemonLimits = (
  rows: readonly Diagnosis[],
  held: Readonly<Record<Control, string>>,
): readonly Diagnosis[] =>
  rows.map((row) => {
    const control = controls.find((one) => one === row.control)
    if (control === undefined || held[control] === (row.enforcedBy ?? 'none')) return row
    const here = row.ok ? row.enforcedBy : null
    const mend =
      here === null ? row.mend : 'end the daemon, and start it from here: sallyport serve --background'
    const cause = `the daemon runs in a group where it has no other${here === null ? '' : `; here it would have ${here}`}`
    return limitRow(control, held[control], { cause, mend })
  })
