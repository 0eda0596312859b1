// Which keys a lenient JSON reader could take for one another.

import { hasLongRun, normalized } from './marks.ts'

const unseen = String.raw`\p{Cc}\p{Cf}\p{Z}\p{DI}`
const allUnseen = new RegExp(`[${unseen}]+`, 'gu')
const shown = new RegExp(`[^${unseen}]{1,64}`, 'gu')
/** No key that is meant by us or by the protocol folds to more characters */
const longestMeant = 48
/** Characters by which a part of a key may be folded differently at its end than all of it: a letter and its marks */
const margin = 40

/**
 * Folds a key as far as any known reader does, and further: case, compatibility forms (the long s, the Kelvin sign,
 * full-width letters), what stands behind a NUL, and whatever is invisible or white space. Two keys with one fold
 * are one key to somebody (CVE-2026-27896, GHSA-q382-vc8q-7jhj).
 *
 * A fold of more than `longest` characters may be returned in part, more than `longest` of it: what others send is folded only as
 * far as it takes to tell it from keys that fold to no more.
 */
export function foldKey(key: string, longest = longestMeant): string {
  if (/^[\x21-\x7e]*$/.test(key)) return key.toLowerCase()
  const nul = key.indexOf('\0')
  const said = nul < 0 ? key : key.slice(0, nul)
  for (let length = 64; ; length *= 2) {
    const begun = beginningOf(said, length)
    const fold = foldOf(begun)
    if (begun.length < length || fold.length > longest + margin || fold.endsWith('\0')) return fold
  }
}

/** What is shown of the text, at least so many of its code units; fewer are all. */
function beginningOf(text: string, length: number): string {
  let begun = ''
  shown.lastIndex = 0
  while (begun.length < length) {
    const run = shown.exec(text)
    if (run === null) break
    begun += run[0]
  }
  return begun
}

/** What becomes a space in the compatibility form goes, too, and marks are joined then with what stands before it. */
function foldOf(text: string): string {
  const visible = normalized(text, 'NFKC').replace(allUnseen, '')
  if (hasLongRun(visible)) return `${visible}\0` // of which nobody makes a key that is meant, nor looks further
  return caseFolded(visible.normalize('NFKC')).normalize('NFKC').replaceAll('\u03c2', '\u03c3')
}

/**
 * Through the upper case, in which letters with several lower ones meet: ß and ss, \u03c2 and \u03c3, the dotless i and i. The dotted I
 * has a lower one of two characters here and is i to Java and to C.
 */
const caseFolded = (text: string): string =>
  text
    .replaceAll('\u0130', 'i')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/i\u0307+/g, 'i')

/** The spellings that are meant, by their fold. */
export interface Spellings {
  readonly exact: ReadonlySet<string>
  readonly byFold: ReadonlyMap<string, string>
  /** Characters of the longest fold */
  readonly longest: number
}

export const spellings = (keys: readonly string[]): Spellings => {
  const folds = keys.map((key) => foldKey(key, Infinity))
  return {
    exact: new Set(keys),
    byFold: new Map(folds.map((fold, index) => [fold, keys[index] ?? ''])),
    longest: longestOf(folds),
  }
}

/** For `foldKey` where a key is compared with these folds. */
export const longestOf = (folds: readonly string[]): number =>
  folds.reduce((longest, { length }) => Math.max(longest, length), longestMeant)

/** True for a key that folds to a known one and is not it, or holds a NUL. */
export const isConfusable = (key: string, known: Spellings): boolean =>
  !known.exact.has(key) && (key.includes('\0') || known.byFold.has(foldKey(key, known.longest)))

/** The first confusable key; null when every reader agrees. */
export const confusable = (keys: readonly string[], known: Spellings): string | null =>
  keys.find((key) => isConfusable(key, known)) ?? null
