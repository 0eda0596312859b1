// How the kernel schedules a process's first thread.
import { readFileSync } from 'node:fs'

const names: Readonly<Record<number, string>> = { 0: 'other', 3: 'batch', 5: 'idle' }

/** Its policy's name; see sched(7), and field 41 of proc_pid_stat(5). */
export function policyOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const behindName = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return names[Number(behindName[38])] ?? `policy ${behindName[38]}`
}
