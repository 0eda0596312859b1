// Wakes up when the first of many answers is due, by a clock that can stand still; one timer for all of them.
import { whenLate } from '../../lib/deadline.ts'

/** Least time between two looks while the clock stands still, ms */
const standingMs = 250

export interface Clock {
  /** Milliseconds that count */
  now(): number
  /** True while none pass */
  readonly isStanding: boolean
}

/** Costs nothing for what is answered before it is due: the timer finds nothing, and asks what is due next. */
export class Alarm {
  readonly #clock: Clock
  readonly #look: (now: number) => number
  #callOff: (() => void) | null = null
  #at = Infinity

  /** `look` sees to whatever is due, and returns when it has to look again, or Infinity. */
  constructor(clock: Clock, look: (now: number) => number) {
    this.#clock = clock
    this.#look = look
  }

  /** Looks at that time at the latest. */
  by(time: number): void {
    if (time < this.#at) this.#set(time)
  }

  off(): void {
    this.#set(Infinity)
  }

  #set(time: number): void {
    this.#callOff?.()
    this.#at = time
    this.#callOff = null
    if (time === Infinity) return
    const inMs = Math.max(Math.ceil(time - this.#clock.now()), this.#clock.isStanding ? standingMs : 1)
    this.#callOff = whenLate(inMs, () => {
      this.#at = Infinity
      this.by(this.#look(this.#clock.now()))
    })
  }
}
