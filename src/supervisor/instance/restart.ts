// When a server that was lost is started again, and when that is given up.
import type { ServerSettings } from '../../schema/settings.ts'

type Restart = ServerSettings['restart']

/** What to do about a loss. */
export type Verdict = { readonly action: 'retry'; readonly delayMs: number } | { readonly action: 'give-up' }

/** How a process was lost. */
export interface Loss {
  /** How long it had been ready, ms; null when it never was */
  readonly readyMs: number | null
  /** False when another try cannot help, e.g. a command that is not allowed */
  readonly retryable: boolean
  /** True where the machine was short of something, or its engine was away: no try of the server's */
  readonly isNoTry?: boolean
}

/** Shortest wait that repeats for ever: what can't be started costs the others little */
const leastRepeatedMs = 100

/**
 * Counts the losses of one server's control instance. One that never became ready gets `start_attempts` tries; one
 * that was ready once is tried for ever, at the pace of the schedule and then of its last entry. A life of `steady_s`
 * starts the schedule anew.
 */
export class RestartSchedule {
  readonly #restart: Restart
  readonly #random: () => number
  #step = 0
  #failedStarts = 0
  #wasReady = false

  constructor(restart: Restart, random: () => number) {
    this.#restart = restart
    this.#random = random
  }

  /** Called for every end that nobody asked for. */
  after(loss: Loss): Verdict {
    if (loss.readyMs !== null) {
      this.#wasReady = true
      if (loss.readyMs >= this.#restart.steadyS * 1000) this.#step = 0
    } else if (loss.isNoTry !== true) this.#failedStarts++
    if (!loss.retryable) return { action: 'give-up' }
    if (!this.#wasReady && this.#failedStarts >= this.#restart.startAttempts) return { action: 'give-up' }
    return { action: 'retry', delayMs: this.#nextDelay() }
  }

  /** Forgets everything: somebody asked for a start in so many words. */
  reset(): void {
    this.#step = 0
    this.#failedStarts = 0
    this.#wasReady = false
  }

  /** The schedule's seconds, up to `jitter` of them more or less, so that servers do not come back in step. */
  #nextDelay(): number {
    const { scheduleS, jitter } = this.#restart
    const seconds = scheduleS[Math.min(this.#step, scheduleS.length - 1)] ?? 60
    const leastMs = this.#step < scheduleS.length ? 0 : leastRepeatedMs
    this.#step++
    return Math.max(leastMs, Math.round(seconds * 1000 * (1 + jitter * (2 * this.#random() - 1))))
  }
}

/** Tells a storm: `storm` unasked ends of one server, all its instances together, within `steady_s`. */
export class StormWatch {
  readonly #restart: Restart
  #ends: number[] = []

  constructor(restart: Restart) {
    this.#restart = restart
  }

  /** Counts an end at `now` (ms, monotonic); true when it makes the storm. */
  ended(now: number): boolean {
    const since = now - this.#restart.steadyS * 1000
    this.#ends = [...this.#ends.filter((end) => end > since), now]
    return this.#ends.length >= this.#restart.storm
  }

  clear(): void {
    this.#ends = []
  }
}
