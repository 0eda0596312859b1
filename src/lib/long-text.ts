// What is long is worked on in steps, each in a turn of the event loop of its own, so that nobody else waits for all of them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LoopTurns } from './loop-turns.ts'

/** Characters beyond which a text is long */
const longest = 262_144
/** Characters of a piece, about */
const pieceLength = 131_072

export const isLong = (text: string): boolean => text.length > longest

/** Those of all parties, since they have one thread. */
const steps = new LoopTurns()

/** Resolves at the beginning of a later turn, in which no other long text is worked on. */
export async function ownTurn(): Promise<void> {
  await nextTurn()
  await steps.take()
}

const quote = 34
const backslash = 92

/** Offset behind the string literal that begins with the quote at `at`. */
export function behindLiteral(json: string, at: number): number {
  for (let end = json.indexOf('"', at + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let escaping = end
    while (json.charCodeAt(escaping - 1) === backslash) escaping--
    if ((end - escaping) % 2 === 0) return end + 1
  }
  return json.length
}

/** A JSON text in pieces, none of which ends within a string; joined they are the text again. */
export function* piecesOf(json: string): Generator<string, undefined> {
  for (let from = 0; from < json.length;) {
    const end = endOfPiece(json, from)
    yield json.slice(from, end)
    from = end
  }
}

// Apart from the generator, in which V8 would only interpret it
function endOfPiece(json: string, from: number): number {
  let at = from
  while (at < json.length && at - from < pieceLength)
    at = json.charCodeAt(at) === quote ? behindLiteral(json, at) : at + 1
  return at
}
