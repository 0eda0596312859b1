// Holds one sandbox from outside: by control groups where this machine has them, by the watchdog where it has not.
import type { InstanceCgroup, CgroupRoot } from '../cgroup/cgroup.ts'
import type { EnforcedLimits } from '../driver.ts'
import type { OuterLimits } from './limits.ts'
import type { SandboxSpec } from '../spec.ts'
import { watchMemory } from './watchdog.ts'

/** Scratch file systems whose pages the watchdog counts; a control group counts them by itself. */
const scratch = ['/tmp', '/home/user', '/dev/shm']

/**
 * Sets what `enforced` promises of memory, pids and cpu for one launch. The caller disposes of it, which kills what is left.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE where the kernel refuses a limit, ERR_SHORTAGE where it has no room for one; nothing is left then.
 */
export function holdFromOutside(
  groups: CgroupRoot,
  spec: Pick<SandboxSpec, 'instance' | 'limits'>,
  enforced: EnforcedLimits,
): OuterLimits {
  const group: InstanceCgroup = groups.forInstance(spec.instance, spec.limits)
  let exceeded = false
  let watchdog: Disposable | null = null
  return {
    joinFiles: group.joinFiles,
    watch(initPid, runOut) {
      const note = (): void => {
        exceeded = true
        runOut()
      }
      group.onOom(note)
      if (enforced.memory !== 'watchdog') return
      watchdog = watchMemory({
        initPid,
        limitBytes: spec.limits.memoryBytes,
        tmpfs: scratch,
        onExceeded: note,
      })
    },
    hasRunOut: () => exceeded || group.oomKills() > 0,
    async [Symbol.asyncDispose]() {
      watchdog?.[Symbol.dispose]()
      group.kill()
      await group.remove()
    },
  }
}
