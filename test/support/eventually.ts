// Waiting for what is true sooner or later, without a fixed sleep.
import { setTimeout as delay } from 'node:timers/promises'

/** Asks again until `condition` gives something other than false, null or undefined; fails at the deadline with the last answer. */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  deadlineMs = 5000,
): Promise<Exclude<Awaited<T>, false | null | undefined>> {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    const outcome = await attempt(condition)
    if ('value' in outcome && isThere(outcome.value)) return outcome.value
    if (performance.now() >= deadline)
      throw new Error(`not true within ${deadlineMs} ms: ${condition.toString()}`, {
        cause: 'error' in outcome ? outcome.error : outcome.value,
      })
    await delay(5)
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
