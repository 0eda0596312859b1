// What callers asked for and what they were told, by token, to be held against the journal and the effects.
import { SallyportError } from '../../src/errors.ts'
import type { Account } from './account.ts'
import { orLate } from '../support/pace.ts'

/** What became of one call, as its caller knows it. */
export interface Told {
  readonly server: string
  readonly way: string
  /** `done` for an answer, a code for an error of ours, `lost` where the caller or the daemon went away */
  end: string
}

/** Tokens of a run; no two calls share one, and nobody tries one twice. */
export class Ledger {
  readonly told = new Map<string, Told>()
  readonly #account: Account
  readonly #patienceMs: number

  /** `patienceMs` is the longest that any answer may take on a machine at rest. */
  constructor(account: Account, patienceMs = 40_000) {
    this.#account = account
    this.#patienceMs = patienceMs
  }

  open(server: string, way: string): string {
    const token = `token-${this.told.size}-${server}`
    this.told.set(token, { server, way, end: 'lost' })
    return token
  }

  close(token: string, end: string): void {
    const told = this.told.get(token)
    if (told === undefined) throw new Error(`${token} was never opened`)
    told.end = end
    this.#account.count('calls', end)
  }

  /** Keeps the words of a refusal that has no name of its own: whoever reads the account sees which deserve one. */
  refused(code: string, words: string): void {
    if (code === 'ERR_INTERNAL') this.#account.count('unnamed', words.slice(0, 200))
  }

  /** Waits for what must come to an end in time; what does not breaks `answers`. Resolves with a code where it fails. */
  async settled(what: string, made: Promise<unknown>): Promise<string> {
    const told = (error: unknown): string => {
      this.refused(codeOf(error), error instanceof Error ? error.message : String(error))
      return codeOf(error)
    }
    const end = await orLate(
      made.then(() => 'done', told),
      this.#patienceMs,
    )
    if (end === 'late')
      this.#account.breaks(
        'answers',
        `${what} had no answer in ${this.#patienceMs / 1000} s, stretched for this machine`,
      )
    return end
  }
}

/** How an error is called: by its code, if it is one of ours. */
export const codeOf = (error: unknown): string =>
  error instanceof SallyportError ? error.code : error instanceof Error ? error.name : 'unknown'
