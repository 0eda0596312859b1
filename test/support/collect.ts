// What lives in this process once nothing is kept for nobody's sake.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Collects all garbage, at once. */
export const collect = runInNewContext('gc') as () => void

/** What lives on V8's heap once all garbage is collected, bytes. */
export const living = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}
