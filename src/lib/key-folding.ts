// Which keys a lenient JSON reader could take for one another.

/** Longest key that is read closely, characters, and those of it that are shown: more than any that is meant has, and nobody waits for others */
const longest = { said: 256, shown: 48 } as const
const unseen = String.raw`\p{Cc}\p{Cf}\p{Z}\p{DI}`
const isLong = new RegExp(`^(?:[${unseen}]*[^${unseen}]){${longest.shown + 1}}`, 'u')
const allUnseen = new RegExp(`[${unseen}]`, 'gu')

/**
 * Folds a key as far as any known reader does, and further: case, compatibility forms (the long s, the Kelvin sign,
 * full-width letters), what stands behind a NUL, and whatever is invisible or white space. Two keys with one fold
 * are one key to somebody (CVE-2026-27896, GHSA-q382-vc8q-7jhj). Of a key of more than 48
 * characters, or of 256 with those that are not shown, the case alone is folded.
 */
export function foldKey(key: string): string {
  if (/^[a-z0-9_/.-]*$/.test(key)) return key
  const nul = key.indexOf('\0')
  const said = nul < 0 ? key : key.slice(0, nul)
  if (said.length > longest.said || isLong.test(said)) return caseFolded(said)
  const visible = said.replace(allUnseen, '').normalize('NFKC').replace(allUnseen, '')
  return caseFolded(visible)
}

/** Through the upper case, in which letters with several lower ones meet: ß and ss, \u03c2 and \u03c3, the dotless i and i. */
const caseFolded = (text: string): string => text.toLowerCase().toUpperCase().toLowerCase()

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
