// Generations of tool lists: what a caller pins its call to, so that no tool is called but the one that it saw.
import { randomInt } from 'node:crypto'
import { SallyportError } from '../../errors.ts'

interface Pinned {
  readonly tool: string
  /** What the caller saw, or null where it does not say */
  readonly generation: number | null
}

/** Generations that a second of the clock stands for */
const perSecond = 2 ** 23
/** From when on seconds are counted, s since 1970: the beginning of 2020 */
const epochS = 1_577_836_800
/** Until when, s since then: in 2054 there are none left that a double holds apart. A clock that stands elsewhere stands at the nearer end. */
const lastS = 2 ** 30 - 2

/**
 * Those of one daemon: they go up, and from one daemon to the next as the clock does. The first is drawn from those of its
 * second, so that one of another daemon is none of this one's, though the clock was set back to the same second.
 */
export class Generations {
  readonly #first = secondNow() * perSecond + randomInt(perSecond / 2)
  #latest = this.#first

  get latest(): number {
    return this.#latest
  }

  next(): number {
    return ++this.#latest
  }

  /** Fails where the caller saw another list than the one that has had the tool as it is `since` then. */
  requireSeen(server: string, since: number, { tool, generation }: Pinned): void {
    const isGiven = generation !== null && this.#first <= generation && generation <= this.#latest
    if (generation === null || (isGiven && since <= generation)) return
    const what = !isGiven
      ? `the caller saw generation ${generation} of ${server}, which this daemon never gave`
      : `${tool} of ${server} is seen as it is since generation ${since}, and the caller saw ${generation}`
    throw new SallyportError('ERR_TOOL_NOT_FOUND', `${what}; list the tools again`, { generation: since })
  }
}

const secondNow = (): number => Math.min(Math.max(Math.floor(Date.now() / 1000) - epochS, 0), lastS)
