// Loaded into the daemon before its own code: on SIGUSR2 it collects what is garbage, and writes down how much lives, in bytes.
// Where a file `.more` stands beside that one, it first keeps 16 MiB for good.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'

const path = process.env.SALLYPORT_CHAOS_LIVING
const kept = []
process.on('SIGUSR2', () => {
  if (existsSync(`${path}.more`)) {
    kept.push(Buffer.alloc(16 * 1024 * 1024, 1))
    rmSync(`${path}.more`)
  }
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  writeFileSync(`${path}.new`, String(heapUsed + external))
  renameSync(`${path}.new`, path)
})
