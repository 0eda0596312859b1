// The clock of what is in flight.
import { hrtime } from 'node:process'

/**
 * Milliseconds that only ever pass, from a beginning that means nothing: `performance.now()` of another beginning, which reaches
 * the time through a global and a look at its receiver that together take longer.
 */
export function nowMs(): number {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1000 + nanoseconds / 1_000_000
}
