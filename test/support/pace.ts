// How long what is waited for may take: bounds for a machine at rest, and by how much this one, now, is slower than that.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from './eventually.ts'

/** What a bare process of Node takes from its start to its end on a machine at rest, ms; a faster one gains nothing by it */
const atRestMs = 50
/** The most times that a bound is stretched: on a machine slower than that nothing can be told, and what hangs must be found */
const mostTimes = 20

/** How many times slower than at rest a machine is on which bare processes took so long, by the quickest: one may have been held up. */
export const slownessOf = (tookMs: readonly number[]): number =>
  Math.min(mostTimes, Math.max(1, Math.min(...tookMs) / atRestMs))

/** What a bound of so many ms is worth here and now: at least that, and as many times that as a process takes longer than at rest. */
export async function stretched(ms: number): Promise<number> {
  return ms * slownessOf([await bareProcess(), await bareProcess(), await bareProcess()])
}

/** What one takes from its start to its end, ms; without end where none can be started. */
async function bareProcess(): Promise<number> {
  const began = performance.now()
  const most = { timeout: atRestMs * mostTimes, killSignal: 'SIGKILL' } as const
  try {
    await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', ...most }), 'exit')
  } catch {
    return Infinity
  }
  return performance.now() - began
}

/** As `eventually`, with a bound that is stretched once it has passed: what hangs is found all the same. */
export async function inGoodTime<T>(
  condition: () => T | Promise<T>,
  ms: number,
): Promise<Exclude<Awaited<T>, false | null | undefined>> {
  try {
    return await eventually(condition, ms)
  } catch {
    return await eventually(condition, (await stretched(ms)) - ms)
  }
}

/** The promise, or `late` where it takes longer than a bound, which is stretched once it has passed. */
export async function orLate<T>(promise: Promise<T>, ms: number): Promise<T | 'late'> {
  const over = Promise.withResolvers<'late'>()
  const expire = async (): Promise<void> => {
    timer = setTimeout(() => over.resolve('late'), (await stretched(ms)) - ms).unref()
  }
  let timer = setTimeout(() => void expire(), ms).unref()
  try {
    return await Promise.race([promise, over.promise])
  } finally {
    clearTimeout(timer)
  }
}
