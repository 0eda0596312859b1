// How many connections may be open at once, of one sandbox and of all.

/** A number of places; `take` gives back what frees one, or null where none is left. */
export class Slots {
  readonly #most: number
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  take(): (() => void) | null {
    if (this.#taken >= this.#most) return null
    this.#taken++
    let isFree = false
    return () => {
      if (!isFree) this.#taken--
      isFree = true
    }
  }
}
