// What a loss of power leaves of the last batches: bytes that no seal holds together, with holes in them, and nobody was answered for.
import { openingBehind } from './opening.ts'
import type { Position } from './record.ts'
import type { MayBeRest } from './segments.ts'

/**
 * Whether what stands behind the last seal of a segment never counted. Where a later segment goes on, it tells of that rest, or
 * of what a second loss of power left behind it; at the journal's end nobody may know of a later record.
 */
export const restIn =
  (directory: string, segment: number, known: () => readonly Position[]): MayBeRest =>
  (end, rest) => {
    const opening = openingBehind(directory, segment)
    if (opening === null) return known().every(({ seq }) => seq <= end.seq)
    const { begins, torn } = opening
    if (begins.seq !== end.seq || begins.hash !== end.hash || torn === null) return false
    return torn.segment > segment || JSON.stringify(torn) === JSON.stringify(rest)
  }
