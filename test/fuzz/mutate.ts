// Inputs near to those that are there: bytes changed, left out, doubled, put in, and pieces of two put together.
import type { Chance } from '../chaos/chance.ts'
import { bytesOf } from './target.ts'

const odd = [0, 9, 10, 13, 32, 34, 44, 58, 92, 127, 128, 255]

/** A changed copy of `bytes`, at most `longest` long. */
export function mutate(
  bytes: Buffer,
  others: readonly Buffer[],
  words: readonly string[],
  chance: Chance,
  longest: number,
): Buffer {
  let made: Buffer = Buffer.from(bytes)
  for (let count = chance.between(1, 4); count > 0; count--) made = change(made, others, words, chance)
  return made.subarray(0, longest)
}

function change(bytes: Buffer, others: readonly Buffer[], words: readonly string[], chance: Chance): Buffer {
  const at = chance.between(0, bytes.length)
  const length = chance.between(0, Math.min(16, bytes.length - at))
  const piece = bytes.subarray(at, at + length)
  const put = (...pieces: readonly Uint8Array[]): Buffer =>
    Buffer.concat([bytes.subarray(0, at), ...pieces, bytes.subarray(at + length)])
  switch (chance.between(0, 7)) {
    case 0:
      return put()
    case 1:
      return put(piece, piece)
    case 2:
      return put(Buffer.alloc(chance.between(1, 4), chance.pick(odd)))
    case 3:
      return put(Buffer.of(chance.between(0, 255)))
    case 4:
      return put(bytesOf(chance.pick(words)))
    case 5:
      return put(piece, bytesOf(chance.pick(words)))
    case 6: {
      const flipped = Buffer.from(bytes)
      if (at < flipped.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << chance.between(0, 7))
      return flipped
    }
    default: {
      const other = chance.pick(others)
      const from = chance.between(0, other.length)
      return put(other.subarray(from, from + chance.between(0, 64)))
    }
  }
}
