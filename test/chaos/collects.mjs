// Loaded into the daemon before its own code: on SIGUSR2 it collects what is garbage, and writes down how much lives, in bytes,
// and what Node keeps for it: handles by what they are for, where that can be told.
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
  const said = { bytes: heapUsed + external, handles: process._getActiveHandles().map(wordsOf) }
  writeFileSync(`${path}.new`, JSON.stringify(said))
  renameSync(`${path}.new`, path)
})

/** What nobody in JavaScript owns any more is there as what libuv has: a `Pipe` and no `Socket`. */
function wordsOf(handle) {
  const fd = handle._handle?.fd ?? handle.fd
  const request = handle._httpMessage
  return [
    handle.constructor.name,
    ...(fd === undefined ? [] : [`fd ${fd}`]),
    ...(request === undefined || request === null ? [] : [`${request.method} ${request.path}`]),
    ...(handle.spawnfile === undefined ? [] : [handle.spawnargs.join(' ')]),
  ].join(' ')
}
