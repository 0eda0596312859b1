// Which keys a lenient JSON reader could take for one another.
import { normalized } from './marks.ts'

/**
 * Folds a key as far as any known reader does, and further: case, compatibility forms (the long s, the Kelvin sign,
 * full-width letters), what stands behind a NUL, and whatever is invisible or white space. Two keys with one fold
 * are one key to somebody (CVE-2026-27896, GHSA-q382-vc8q-7jhj).
 */
export function foldKey(key: string): string {
  if (/^[a-z0-9_/.-]*$/.test(key)) return key
  const visible = normalized(key.split('\0')[0] ?? '', 'NFKC').replace(/[\p{Cc}\p{Cf}\p{Z}\p{DI}]/gu, '')
  // Through the upper case, in which letters with several lower ones meet: ß and ss, \u03c2 and \u03c3, the dotless i and i.
  return visible.toLowerCase().toUpperCase().toLowerCase()
}

/** The spellings that are meant, by their fold. */
export interface Spellings {
  readonly exact: ReadonlySet<string>
  readonly byFold: ReadonlyMap<string, string>
}

export const spellings = (keys: readonly string[]): Spellings => ({
  exact: new Set(keys),
  byFold: new Map(keys.map((key) => [foldKey(key), key])),
})

/** True for a key that folds to a known one and is not it, or holds a NUL. */
export const isConfusable = (key: string, known: Spellings): boolean =>
  !known.exact.has(key) && (key.includes('\0') || known.byFold.has(foldKey(key)))

/** The first confusable key; null when every reader agrees. */
export const confusable = (keys: readonly string[], known: Spellings): string | null =>
  keys.find((key) => isConfusable(key, known)) ?? null
