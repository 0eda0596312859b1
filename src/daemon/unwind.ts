// The way down: what was done, undone in reverse.
import type { Logger } from '../lib/logger.ts'

/** What undoes each step that was taken, in the order of the steps. */
export type Undo = (() => Promise<void>)[]

/** Each step is tried whatever became of the one before: the lock must not stay because a server was stubborn. */
export async function unwind(undo: Undo, log: Logger): Promise<void> {
  for (let step = undo.pop(); step !== undefined; step = undo.pop())
    await step().catch((error: unknown) => log.error({ err: error }, 'shutdown step failed'))
}
