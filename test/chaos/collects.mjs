// Loaded into the daemon before its own code: on SIGUSR2 it collects what is garbage, and writes down how much lives, in bytes.
import { renameSync, writeFileSync } from 'node:fs'

const path = process.env.SALLYPORT_CHAOS_LIVING
process.on('SIGUSR2', () => {
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  writeFileSync(`${path}.new`, String(heapUsed + external))
  renameSync(`${path}.new`, path)
})
