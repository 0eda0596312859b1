// The way down: what was done, undone in reverse.
import type { Logger } from '../lib/logger.ts'

/** How one step that was taken is undone, and what it is about for whoever reads the log. */
interface Step {
  readonly what: string
  readonly undo: (before: Before) => Promise<void>
}

/** What became of the steps that were undone before. */
interface Before {
  /** Something of theirs may be left */
  readonly hasFailed: boolean
}

/** The steps that were taken, in their order. */
export type Undo = Step[]

/** How long a step may take before the log tells of it, and how often it tells, ms. */
const longMs = 5_000

/**
 * Each step is tried whatever became of the one before: the lock must not stay because a server was stubborn. One that
 * takes long is named in the log while it does. Resolves with whether all went well.
 */
export async function unwind(undo: Undo, log: Logger): Promise<boolean> {
  let hasFailed = false
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) {
    const { what } = step
    const began = performance.now()
    const told = setInterval(() => {
      log.warn({ step: what, durationMs: Math.round(performance.now() - began) }, 'shutdown waits')
    }, longMs)
    await step.undo({ hasFailed }).catch((error: unknown) => {
      hasFailed = true
      log.error({ err: error, step: what }, 'shutdown step failed')
    })
    clearInterval(told)
  }
  return !hasFailed
}
