// Messages of one program are alike: between the values that differ stands the same text, which need not be read again.
import { endOfValueIn, Piece, viewOf } from '../../lib/json-bytes.ts'
import { bound, JsonScanError, type Member, type Span } from '../../lib/json-scan.ts'
import { type MessageId, messageId } from './message-id.ts'

/** Longest message that is learnt from, and longest that is looked at, characters: of a longer one hardly anything is known */
const longest = { learnt: 1024, read: 65_536 } as const
/** Of messages that are like none before, every so many-th is remembered: where they come by turns, few are for nothing */
const every = 4
const depths = { id: 1, member: 2 } as const
const none: readonly Member[] = []
const nothing = new Piece(Buffer.alloc(0))

/** What a request, or an answer with a result, says of itself. */
export interface Said {
  /** Null for an answer */
  readonly method: string | null
  readonly id: MessageId
  readonly idSpan: Span
  /** `params` or `result` */
  readonly body: Member
}

/** One message without its id and without the values of the members of its `params` or `result`. */
interface Mould {
  /** What stands before each value, and behind the last */
  readonly pieces: readonly Piece[]
  /** For each value the key that it has in `params` or `result`; null for the id */
  readonly keys: readonly (string | null)[]
  /** A list that has as many members as `params` or `result` */
  readonly room: readonly Member[]
  /** How far `params` or `result` begins before its first member's value, and ends behind its last one's */
  readonly before: number
  readonly behind: number
  /** Null for an answer */
  readonly method: string | null
}

/**
 * Reads messages that differ from one before in the values alone: a call with short arguments in less than half of the time
 * that reading it from the beginning takes. What comes of it is the same: text that is letter for letter the same leads to the same place in
 * the grammar with the same keys, and each value is read by the grammar from there. All else is left to the one who reads all.
 */
export class Likeness {
  readonly #isStrict: boolean
  #mould: Mould | null = null
  #unlike = 0

  /** `isStrict` as the messages are read that are learnt from. */
  constructor(isStrict: boolean) {
    this.#isStrict = isStrict
  }

  /**
   * The message from `start` to `end` of `bytes`, of which `text` is the latin1 reading; null for one that is not like the last
   * that was learnt, or that can't be read.
   */
  read(bytes: Uint8Array, text: string, start: number, end: number): Said | null {
    const mould = this.#mould
    if (mould === null || end - start > longest.read) return null
    try {
      return this.#readLike(mould, bytes, text, start, end)
    } catch (thrown) {
      if (!(thrown instanceof JsonScanError)) throw thrown
      return null
    }
  }

  #readLike(mould: Mould, bytes: Uint8Array, text: string, start: number, end: number): Said | null {
    const { pieces, keys, before, behind, method } = mould
    const last = pieces[keys.length] ?? nothing
    const view = viewOf(bytes)
    if (end - last.length < start || !last.isAt(view, end - last.length, end)) return null
    const inner = mould.room.slice() // as long as it will be
    let found = 0
    let idSpan: Member | null = null
    let at = start
    bound(this.#isStrict || 'listed') // as when it is read from the beginning, which what comes before must not change
    for (let n = 0; n < keys.length; n++) {
      const piece = pieces[n] ?? nothing
      if (!piece.isAt(view, at, end)) return null
      at += piece.length
      const key = keys[n] ?? null
      const value = at
      at = endOfValueIn(bytes, text, value, this.#isStrict, key === null ? depths.id : depths.member)
      if (key === null) idSpan = { key: 'id', start: value, end: at, inner: none }
      else inner[found++] = { key, start: value, end: at, inner: none }
    }
    if (at + last.length !== end || idSpan === null) return null
    const id = messageId(text.slice(idSpan.start, idSpan.end))
    if (id === null) return null
    const from = (inner[0]?.start ?? 0) - before
    const to = (inner.at(-1)?.end ?? 0) + behind
    const key = method === null ? 'result' : 'params'
    return { method, id, idSpan, body: { key, start: from, end: to, inner } }
  }

  /** Learns from a request or a result that was read from the beginning, whose members are `found`. */
  learn(
    text: string,
    start: number,
    end: number,
    said: Pick<Said, 'method' | 'body'>,
    found: readonly Member[],
  ): void {
    if (this.#unlike++ % every === 0) this.#mould = mouldOf(text, start, end, said, found) ?? this.#mould
  }
}

function mouldOf(
  text: string,
  start: number,
  end: number,
  { method, body }: Pick<Said, 'method' | 'body'>,
  found: readonly Member[],
): Mould | null {
  const id = found.find(({ key }) => key === 'id')
  const [first, last] = [body.inner[0], body.inner.at(-1)]
  if (first === undefined || last === undefined || id === undefined) return null
  const values = [...body.inner, id].toSorted((a, b) => a.start - b.start)
  const pieces = [...values, null].map(
    (value, n) => [values[n - 1]?.end ?? start, value?.start ?? end] as const,
  )
  // Behind the end stands what is not of the message, and decides whether a carriage return may stand before it.
  if (text.charAt(end - 1) !== '}' || end - start > longest.learnt) return null
  return {
    pieces: pieces.map(([from, to]) => new Piece(Buffer.from(text.slice(from, to), 'latin1'))),
    keys: values.map((value) => (value === id ? null : value.key)),
    room: body.inner.map(() => first),
    before: first.start - body.start,
    behind: body.end - last.end,
    method,
  }
}
