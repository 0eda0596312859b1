// Much small work, such that whoever has one message to be answered does not wait for all of it.
import { ownTurn } from './long-text.ts'

/** How long pieces follow one another in one turn of the event loop, ms */
const stintMs = 5

/** Takes piece after piece of what is worked out as it is taken, and leaves others their turns in between. */
export async function inTurns<T>(pieces: Iterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  let began = performance.now()
  for (const piece of pieces) {
    all.push(piece)
    if (performance.now() - began < stintMs) continue
    await ownTurn()
    began = performance.now()
  }
  return all
}
