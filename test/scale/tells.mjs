// Loaded into the daemon before its own code: once a second it writes down what lives in its heap and how busy its event loop is.
import { renameSync, writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

const path = process.env.SALLYPORT_SCALE_TOLD
let last = performance.eventLoopUtilization()
setInterval(() => {
  const now = performance.eventLoopUtilization()
  const { heapUsed, external } = process.memoryUsage()
  const busy = performance.eventLoopUtilization(now, last).utilization
  last = now
  writeFileSync(`${path}.new`, JSON.stringify({ heapBytes: heapUsed + external, busy }))
  renameSync(`${path}.new`, path)
}, 1000).unref()
