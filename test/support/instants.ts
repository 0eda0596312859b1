// Instants of a launch at which its supervisor is killed: the first 20 ms, spread evenly, both ends included.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { often } from './often.ts'

const windowMs = 20

/** So many, ms after the launch began; SALLYPORT_KILLS in place of what is usual, for a long run. */
export const instants = (usual: number): readonly number[] => {
  const count = often('SALLYPORT_KILLS', usual)
  return Array.from({ length: count }, (_, index) => (index * windowMs) / Math.max(1, count - 1))
}

/** Waits to the fraction of a millisecond, which no timer does. */
export const elapsed = async (ms: number): Promise<void> => {
  const end = performance.now() + ms
  while (performance.now() < end) await nextTurn()
}
