// Waiting for what is true sooner or later, without a fixed sleep.
import { setTimeout as delay } from 'node:timers/promises'
import { patienceMs } from './patience.ts'

/** Asks again until `condition` gives something other than false, null or undefined; fails at the deadline with the last answer. */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  deadlineMs = patienceMs,
): Promise<Exclude<Awaited<T>, false | null | undefined>> {
  const started = performance.now()
  for (;;) {
    const outcome = await attempt(condition)
    if ('value' in outcome && isThere(outcome.value)) return outcome.value
    const waitedMs = performance.now() - started
    if (waitedMs >= deadlineMs)
      throw new Error(`not true within ${deadlineMs} ms: ${condition.toString()}`, {
        cause: 'error' in outcome ? outcome.error : outcome.value,
      })
    // Less often the longer it takes: whoever asks takes the processors from what is waited for
    await delay(Math.min(Math.max(5, waitedMs / 20), 50))
  }
}

async function attempt<T>(
  condition: () => T | Promise<T>,
): Promise<{ value: Awaited<T> } | { error: unknown }> {
  try {
    return { value: await condition() }
  } catch (error) {
    return { error }
  }
}

function isThere<T>(value: T): value is Exclude<T, false | null | undefined> {
  return value !== false && value !== null && value !== undefined
}
