// Which faults a run is to have, which of them came, and what is said of those that did not.
import { faults } from './faults.ts'

/**
 * The names of the faults that have any of these words in them, with commas between; of all where none are said. Throws
 * where a word is in no name.
 */
export function chosenOf(only: string | null): readonly string[] {
  const names = Object.keys(faults)
  if (only === null) return names
  const words = only.split(',').map((word) => word.trim())
  const strange = words.filter((word) => word === '' || !names.some((name) => name.includes(word)))
  if (strange.length > 0)
    throw new Error(
      `--only ${strange.join(',')}: in no fault’s name; use words of these: ${names.join(', ')}`,
    )
  return names.filter((name) => words.some((word) => name.includes(word)))
}

/** What became of the faults that one run is to have, all of its parts together. */
export class Coming {
  readonly chosen: readonly string[]
  readonly #came = new Set<string>()
  readonly #missed = new Set<string>()

  constructor(only: string | null) {
    this.chosen = chosenOf(only)
  }

  /** That one was let come, and whether it befell anybody. */
  note(name: string, hasTaken: boolean): void {
    const of = hasTaken ? this.#came : this.#missed
    of.add(name)
  }

  /** Whether that one befell somebody. */
  hasCome(name: string): boolean {
    return this.#came.has(name)
  }

  /** Whether nothing befell anybody. */
  get isNone(): boolean {
    return this.#came.size === 0
  }

  /** How many came, and by name those that did not, in one line. */
  inWords(): string {
    const others = this.chosen.filter((name) => !this.#came.has(name))
    const missed = others.filter((name) => this.#missed.has(name))
    const never = others.filter((name) => !this.#missed.has(name))
    const tell = (words: string, names: readonly string[]): string =>
      names.length === 0 ? '' : `; ${words}: ${names.join(', ')}`
    const came = `faults that came: ${this.#came.size} of ${this.chosen.length}`
    return `${came}${tell('befell nobody', missed)}${tell('never came', never)}`
  }
}
