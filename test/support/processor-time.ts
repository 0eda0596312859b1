// What work took of a processor: a machine that does other things too makes its wall time longer, and this hardly.
import { readFileSync } from 'node:fs'

/** Processor time of this thread that `work` took, in ms. */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Processor time of a process so far, s; the kernel counts it in hundredths. */
export function processorS(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
