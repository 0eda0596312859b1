// Waiting between two measurements, with an end.
import { setTimeout } from 'node:timers/promises'

/** Asks again every 2 ms; fails after `limitMs` with what was not so. Nothing else goes on meanwhile that is measured. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const began = performance.now()
  while (!(await isSo())) {
    if (performance.now() - began > limitMs) throw new Error(`not within ${limitMs / 1000} s: ${what}`)
    await setTimeout(2)
  }
}
