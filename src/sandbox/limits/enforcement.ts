// Chooses the mechanism that will hold each limit of a launch, or refuses the launch by the limit's name.
import { SallyportError } from '../../errors.ts'
import type { CgroupSupport, Control } from '../cgroup/level.ts'
import type { EnforcedBy, EnforcedLimits } from '../driver.ts'
import type { Limits } from '../spec.ts'

/** What of this host decides how limits can be held. */
export interface LimitSupport {
  readonly cgroups: CgroupSupport
  /** Whether RLIMIT_NPROC counts per user namespace (Linux 5.14), not per uid on the whole machine */
  readonly nprocPerNamespace: boolean
  /** Whether `/proc` lists the children of a process, without which the watchdog would see PID 1 only */
  readonly processTree: boolean
}

/**
 * Says what holds each limit. A control group is best; then memory falls to the watchdog (to
 * nothing where that would be blind), pids to RLIMIT_NPROC, and cpu
 * to nothing, and these only where the profile says best-effort (pids by RLIMIT_NPROC is firm, so `required` takes it).
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE for the first limit that is required and that nothing here can hold.
 */
export function chooseEnforcement(limits: Limits, support: LimitSupport): EnforcedLimits {
  const { enforcement } = limits
  const group = (control: Control): EnforcedBy | null => {
    const base = support.cgroups.bases[control]
    return base === null ? null : `cgroup-v${base.version}`
  }
  const rlimit = support.nprocPerNamespace ? 'rlimit' : null
  return {
    memory:
      group('memory') ??
      (enforcement.memory === 'required'
        ? refuse('memory', limits.memoryBytes)
        : support.processTree
          ? 'watchdog'
          : 'none'),
    pids: group('pids') ?? rlimit ?? (enforcement.pids === 'required' ? refuse('pids', limits.pids) : 'none'),
    cpu: group('cpu') ?? (enforcement.cpu === 'required' ? refuse('cpu', limits.cpu) : 'none'),
    files: 'rlimit',
    tmp: 'tmpfs',
  }

  function refuse(control: Control, value: number): never {
    const { cause, mend } = support.cgroups
    throw new SallyportError(
      'ERR_SANDBOX_UNENFORCEABLE',
      `limits.${control} (${value}, required) cannot be held on this machine: ${cause ?? 'no control group'}; ` +
        `${mend ?? 'mount the control groups'}, or set limits.enforcement.${control}: best-effort`,
      { control, value, cause, mend },
    )
  }
}

/** What holds each limit where a launch takes whatever there is. */
export const bestEnforcement = (support: LimitSupport): EnforcedLimits =>
  chooseEnforcement(anyLimits, support)

const anyLimits: Limits = {
  memoryBytes: 1,
  pids: 1,
  cpu: 1,
  openFiles: 1,
  fileBytes: 1,
  tmpBytes: 1,
  enforcement: { memory: 'best-effort', pids: 'best-effort', cpu: 'best-effort', files: 'best-effort' },
}
