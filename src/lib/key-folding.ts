// Which keys a lenient JSON reader could take for one another.

/**
 * Folds a key as far as any known reader does, and further: case, compatibility forms (the long s, the Kelvin sign,
 * full-width letters), what stands behind a NUL, and invisible or white space around it. Two keys with one fold
 * are one key to somebody (CVE-2026-27896, GHSA-q382-vc8q-7jhj).
 */
export function foldKey(key: string): string {
  if (/^[a-z0-9_/.-]*$/.test(key)) return key
  const visible = (key.split('\0')[0] ?? '').normalize('NFKC').replace(/[\p{Cc}\p{Cf}\p{Zs}\p{Mn}]/gu, '')
  return visible.toLowerCase().replaceAll('\u0131', 'i')
}

/** The first key that is not `known` itself but folds to it, or holds a NUL; null when every reader agrees. */
export function confusable(keys: Iterable<string>, known: ReadonlyMap<string, string>): string | null {
  for (const key of keys) {
    if (key.includes('\0')) return key
    const meant = known.get(foldKey(key))
    if (meant !== undefined && meant !== key) return key
  }
  return null
}

/** The table that `confusable` takes: fold -> the one spelling that is meant. */
export const spellings = (keys: readonly string[]): ReadonlyMap<string, string> =>
  new Map(keys.map((key) => [foldKey(key), key]))
