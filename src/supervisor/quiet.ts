// Asks a server what it lists until it stays at its answer: what it may have changed since is not called.
import { setTimeout as delay } from 'node:timers/promises'
import type { ServerSettings } from '../schema/settings.ts'
import { unavailable } from './unavailable.ts'

/** Longest pause between two questions, ms */
const maxPauseMs = 2000

export interface Question {
  readonly server: Pick<ServerSettings, 'name' | 'timeouts'>
  /** Asks, and compares the answer */
  readonly ask: () => Promise<unknown>
  /** True when the server said since the last question that its lists have changed */
  readonly isStale: () => boolean
}

/**
 * Resolves when the answer that was compared last still stands. Asks again at growing pauses, for `initialize_ms`.
 *
 * @throws ERR_SERVER_UNAVAILABLE where the server says without end that its lists have changed
 */
export async function untilQuiet({ server, ask, isStale }: Question): Promise<void> {
  const { initializeMs } = server.timeouts
  const end = performance.now() + initializeMs
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    await ask()
    if (!isStale()) return
    if (performance.now() + pauseMs > end) {
      const limit = `timeouts.initialize_ms (${initializeMs})`
      throw unavailable(server.name, `it kept saying for ${limit} that its lists have changed`)
    }
    await delay(pauseMs)
  }
}
