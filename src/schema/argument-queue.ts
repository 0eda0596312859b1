// Who waits for the thread that judges arguments: those first who have had the least of its time, so that nobody's hostile schemas are others' wait.

/** Whose question it is, and about whose tool. */
interface Owned {
  readonly server: string
  readonly principal: string
}

interface Party<Asked> {
  /** Time of the thread that was its own, ms; one that comes later begins where the others are */
  spentMs: number
  /** Server -> what waits of it; the first is whose turn it is */
  readonly lines: Map<string, Asked[]>
}

/** The servers of one principal take turns, and the questions of each are asked in their order. */
export class ArgumentQueue<Asked extends Owned> {
  readonly #parties = new Map<string, Party<Asked>>()
  /** What whoever was last let in had had by then, ms */
  #clockMs = 0

  add(asked: Asked): void {
    const party = this.#partyOf(asked.principal)
    if (party.lines.size === 0) party.spentMs = Math.max(party.spentMs, this.#clockMs)
    const line = party.lines.get(asked.server)
    if (line === undefined) party.lines.set(asked.server, [asked])
    else line.push(asked)
  }

  /** Takes the next question, or null where none waits; whoever took one says when it is done. */
  next(): Asked | null {
    const [first] = [...this.#parties.values()]
      .filter(({ lines }) => lines.size > 0)
      .toSorted((one, other) => one.spentMs - other.spentMs)
    if (first === undefined) return null
    this.#clockMs = first.spentMs
    const [line] = first.lines.values()
    return line?.shift() ?? null
  }

  /** The question took so long: its server is behind the others of its principal, and its principal has had that time. */
  done({ principal, server }: Owned, ms: number): void {
    const party = this.#partyOf(principal)
    party.spentMs += ms
    const line = party.lines.get(server) ?? []
    party.lines.delete(server)
    if (line.length > 0) party.lines.set(server, line)
  }

  /** Takes all that waits. */
  rest(): readonly Asked[] {
    const parties = [...this.#parties.values()]
    this.#parties.clear()
    return parties.flatMap(({ lines }) => [...lines.values()].flat())
  }

  #partyOf(principal: string): Party<Asked> {
    let party = this.#parties.get(principal)
    if (party === undefined) this.#parties.set(principal, (party = { spentMs: 0, lines: new Map() }))
    return party
  }
}
