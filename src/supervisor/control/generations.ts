// Generations of tool lists: what a caller pins its call to, so that no tool is called but the one that it saw.
import { SallyportError } from '../../errors.ts'

interface Pinned {
  readonly tool: string
  /** What the caller saw, or null where it does not say */
  readonly generation: number | null
}

/** Those of one daemon: they go up, and none of them is one of a daemon before. */
export class Generations {
  /** Beyond all of a daemon before, unless the clock was set back; then those are beyond all of this one's */
  #latest = Date.now()

  get latest(): number {
    return this.#latest
  }

  next(): number {
    return ++this.#latest
  }

  /** Fails where the caller saw another list than the one that has had the tool as it is `since` then. */
  requireSeen(server: string, since: number, { tool, generation }: Pinned): void {
    if (generation === null || (since <= generation && generation <= this.#latest)) return
    const what =
      generation > this.#latest
        ? `the caller saw generation ${generation} of ${server}, which this daemon never gave`
        : `${server} changed ${tool} in generation ${since}, and the caller saw ${generation}`
    throw new SallyportError('ERR_TOOL_NOT_FOUND', `${what}; list the tools again`, { generation: since })
  }
}
