// What one principal's sessions have tried of a server: hosts start it as often as they come, whatever became of the last start.
import { Due } from '../../lib/due.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Lost } from '../instance/life.ts'
import { RestartSchedule } from '../instance/restart.ts'
import { noMoreSessions, notYet, unavailable } from '../message/unavailable.ts'

/** Why no session starts the server now, as people see it. */
export interface Down {
  readonly state: 'pending' | 'failed'
  readonly reason: string
}

/** One session's part in them. */
export interface Attempt {
  /** It starts the server. Throws ERR_SERVER_UNAVAILABLE where that is before its time */
  readonly begin: () => void
  /** What it began has ended, and nobody asked for it */
  readonly lost: (lost: Lost) => void
  /** What it began is ready */
  readonly ready: () => void
}

/**
 * Paces the starts of a server that never became ready, as `restart` has it: the next one not before its time, and none after
 * `start_attempts` in a row, until `clear`. What was ready, and what never ran for want of something else, is not counted; nor
 * is a launch that the next one's refusal says as well.
 */
export class Attempts {
  readonly #server: ServerSettings
  readonly #schedule: RestartSchedule
  #lost: { readonly reason: string; readonly next: Due | null } | null = null
  /** Losses that were counted */
  #losses = 0

  constructor(server: ServerSettings, random: () => number) {
    this.#server = server
    this.#schedule = new RestartSchedule(server.restart, random)
  }

  /** Null where a session may start it. */
  get down(): Down | null {
    if (this.#lost === null) return null
    const { reason, next } = this.#lost
    const { name } = this.#server
    return next === null
      ? { state: 'failed', reason: noMoreSessions(name, reason) }
      : { state: 'pending', reason: notYet(name, reason, next.at.toISOString()) }
  }

  /** For one more session. */
  attempt(): Attempt {
    let begun = 0
    return {
      begin: () => (begun = this.#begin()),
      lost: (lost) => this.#lose(begun, lost),
      ready: () => this.clear(),
    }
  }

  #begin(): number {
    const { down } = this
    if (down !== null) throw unavailable(this.#server.name, down.reason)
    return this.#losses
  }

  /** What had begun before a loss was counted is of the same try: sessions that come at once are one. */
  #lose(begun: number, { reason, readyMs, retryable, isNoTry = false, needsAuth = false }: Lost): void {
    if (readyMs !== null || !retryable || isNoTry || needsAuth || begun !== this.#losses) return
    this.#losses++
    const verdict = this.#schedule.after({ readyMs, retryable })
    this.#lost?.next?.cancel()
    const next = verdict.action === 'retry' ? new Due(verdict.delayMs, () => (this.#lost = null)) : null
    this.#lost = { reason, next }
  }

  /** One is ready, or somebody asked for a start in so many words. */
  clear(): void {
    this.#losses++
    this.#schedule.reset()
    this.#lost?.next?.cancel()
    this.#lost = null
  }
}
