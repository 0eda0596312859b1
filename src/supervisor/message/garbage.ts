// How much that is no message one server may write.
import { SallyportError } from '../../errors.ts'

/** Messages that were no messages, in one second, beyond which a server is not worth listening to */
export const mostGarbage = 1000
/** A line without end is given up beyond this many times its limit */
export const overlongFactor = 16

export class Garbage {
  readonly #server: string
  #second = 0
  #count = 0

  constructor(server: string) {
    this.#server = server
  }

  /** Counts so many; says why that was too many, or null. */
  count(more = 1): SallyportError | null {
    const second = Math.floor(performance.now() / 1000)
    this.#count = second === this.#second ? this.#count + more : more
    this.#second = second
    if (this.#count <= mostGarbage) return null
    const what = `${this.#server} wrote more than ${mostGarbage} lines in a second that are not MCP`
    return new SallyportError('ERR_SERVER_PROTOCOL', `${what}; a server logs to stderr`)
  }
}
