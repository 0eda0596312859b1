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
  let here = at + 1
  for (let char = json.charCodeAt(here); char !== quote && here < json.length; char = json.charCodeAt(here))
    here += char === backslash ? 2 : 1
  return here + 1
}

/** A JSON text in pieces, none of which ends within a string; joined they are the text again. */
export function* piecesOf(json: string): Generator<string, undefined> {
  let from = 0
  for (let at = 0; at < json.length;) {
    at = json.charCodeAt(at) === quote ? behindLiteral(json, at) : at + 1
    if (at - from < pieceLength && at < json.length) continue
    yield json.slice(from, at)
    from = at
  }
}
