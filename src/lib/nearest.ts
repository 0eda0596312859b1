// What somebody probably meant: the known word nearest to the one they wrote.

/** Returns the known word that is a slip of the pen away from `word`, or null where none is near enough to name. */
export function nearest(word: string, known: Iterable<string>): string | null {
  const wanted = word.slice(0, 64).toLowerCase()
  let best: string | null = null
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const near = distance(wanted, candidate.toLowerCase())
    if (near < bestDistance) [best, bestDistance] = [candidate, near]
  }
  return best
}

/** The question that an error about an unknown word ends with: `; did you mean …?`, or nothing. */
export function meant(word: string, known: Iterable<string>): string {
  const best = nearest(word, known)
  return best === null ? '' : `; did you mean ${best}?`
}

/** Edits (insert, delete, replace, swap of neighbours) between two words; a word inside the other counts as one. */
function distance(a: string, b: string): number {
  if (a !== b && Math.min(a.length, b.length) >= 4 && (a.includes(b) || b.includes(a))) return 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      const at = (line: readonly number[], column: number): number => line[column] ?? 0
      let least = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(beforeLast, j - 2) + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
