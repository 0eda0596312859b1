// Asks a server what it lists until it stays at its answer, and no longer: what it may have changed since is not called.
import { setTimeout as delay } from 'node:timers/promises'
import type { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'
import type { Comparing } from '../../lib/once-compared.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { unavailable } from '../message/unavailable.ts'

/** Longest pause between two questions, ms */
const maxPauseMs = 2000

type Server = Pick<ServerSettings, 'name' | 'timeouts'>

export interface Question {
  readonly server: Server
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
    if (performance.now() + pauseMs > end) throw restless(server)
    await delay(pauseMs)
  }
}

/**
 * What one call that was proposed waits for: whatever `known` does, for `initialize_ms` in all, however often it has to.
 *
 * Rejects with ERR_SERVER_UNAVAILABLE where that is not enough.
 */
export function comparingOf(server: Server, known: Comparing): Comparing {
  let leftMs = server.timeouts.initializeMs
  return () => {
    const pending = known()
    if (pending === null) return null
    if (leftMs <= 0) return Promise.race([Promise.reject(restless(server)), pending])
    const began = performance.now()
    return within(pending, leftMs, () => restless(server)).finally(() => {
      leftMs -= performance.now() - began
    })
  }
}

const restless = ({ name, timeouts }: Server): SallyportError =>
  unavailable(
    name,
    `it kept saying for timeouts.initialize_ms (${timeouts.initializeMs}) that its lists have changed`,
  )
