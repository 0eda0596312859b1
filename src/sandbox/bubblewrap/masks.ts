// What of /proc a server has no business with: host-wide facts and switches, covered one by one.
import { lstat } from 'node:fs/promises'
import { isMissing } from '../../lib/missing.ts'

/** One entry of /proc to cover: a file by a device that opens for nobody, a folder by an empty read-only one. */
export interface ProcMask {
  readonly path: string
  readonly kind: 'file' | 'directory'
}

// Kernel memory, logs and addresses first, then hardware, then load and layout of the host. The last is where systemd has mounts of
// its own among the kernel's settings, one of which has it act at a touch: what shows the settings brings them along.
const candidates = `
  kcore kmsg kallsyms keys key-users config.gz cmdline sysrq-trigger kpagecgroup kpagecount kpageflags slabinfo
  vmallocinfo pagetypeinfo buddyinfo zoneinfo vmstat timer_list timer_stats sched_debug schedstat latency_stats
  interrupts softirqs iomem ioports dma mtrr fb consoles crypto modules swaps locks diskstats partitions mdstat
  scsi bus fs irq acpi asound driver tty pressure sysvipc
  sys/fs/binfmt_misc
`
  .trim()
  .split(/\s+/)

/** Returns the masks for the entries that this host's kernel has; a host without one of them has nothing to hide there. */
export const presentProcMasks = async (): Promise<readonly ProcMask[]> => {
  const masks: ProcMask[] = []
  for (const name of candidates) {
    const path = `/proc/${name}`
    try {
      masks.push({ path, kind: (await lstat(path)).isDirectory() ? 'directory' : 'file' })
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  return masks
}
