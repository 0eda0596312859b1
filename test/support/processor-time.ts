// What work took of a processor: a machine that does other things too makes its wall time longer, and this hardly.

/** Processor time of this thread that `work` took, in ms. */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
