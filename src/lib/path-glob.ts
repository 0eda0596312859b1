// Globs for paths and other texts that are no URIs, of which one thing has many spellings: `%2e%2e/x`, `．．/x`, `x` for `/home/x`.
import { isUtf8 } from 'node:buffer'
import { type Effort, isPlainPath, matchesLoosely, matchesPath, matchesText } from './glob.ts'
import { lookAlikes, shown } from './look-alikes.ts'
import { latin1 } from './one-way.ts'
import { trimmed, withoutTrailing } from './trailing.ts'

/** No path of Linux is as long; what is longer is looked at in no other reading */
const longest = 65_536
/** Times that something may be escaped in itself */
const rounds = 3
/** Steps of comparing that a character of another reading takes to be found, one that comes out of escapes, and one of an address */
const ofReading = { plain: 2, decoded: 12, resolved: 4 } as const
/** How a glob for addresses without an authority begins, as `urn:isbn:*` */
const scheme = /^[a-z][a-z\d+.-]*:/i

/**
 * As `matchesPath`: true or false where every reader of the value is told the same, whether it takes escapes and look-alikes for
 * what they stand for or does not, drops blanks at the ends or does not, and resolves an address or does not; null where they are not, where a relative path stands
 * against an absolute one, where a glob without a slash would say something else of a value that has one if its wildcards crossed
 * that, as in `rm *` and `rm -rf /`, where only a looser reader lets it match, as `/a/` and `/a`, and for what is no plain path to one of
 * them, or takes more steps than are left. The glob's own spelling is the normal one.
 */
export function matchesPlainly(glob: string, value: string, effort?: Effort): boolean | null {
  if (!isPlainPath(glob, value) || isElsewhere(glob, value)) return null
  const verdict = matchesEitherWay(glob, value, effort)
  if (verdict === null || glob === value) return verdict
  if (!isSameResolved(glob, value, verdict, effort)) return null
  if (/^[\x20-\x24\x26-\x7e]*$/.test(value) && !value.startsWith(' ') && !value.endsWith(' ')) return verdict
  const readings = readingsWithin(effort, value)
  const isAlike = (text: string): boolean =>
    isPlainPath(glob, text) &&
    !isElsewhere(glob, text) &&
    matchesEitherWay(glob, text, effort) === verdict &&
    isSameResolved(glob, text, verdict, effort)
  return readings?.every((text) => text === value || isAlike(text)) === true ? verdict : null
}

/**
 * Whoever writes a glob without a slash may mean no path by it, and nothing that ends at one; who writes one with a slash may mean
 * what it says to looser readers, too.
 */
function matchesEitherWay(glob: string, value: string, effort?: Effort): boolean | null {
  const verdict = matchesPath(glob, value, effort)
  if (!glob.includes('/')) {
    if (!value.includes('/')) return verdict
    const bare = withoutTrailing(value.slice(behindHere(value)), ['/'])
    const isSame = (text: string): boolean => matchesText(glob, text, effort) === verdict
    return isSame(value) && isSame(bare) ? verdict : null
  }
  return verdict === false && matchesLoosely(glob, value, effort) !== false ? null : verdict
}

/** Offset behind the steps that a path begins with and that lead nowhere, as `././/`. An expression for them has no room for millions. */
function behindHere(path: string): number {
  let at = 0
  while (path.startsWith('./', at)) for (at += 2; path[at] === '/';) at++
  return at
}

/** Who resolves addresses (`new URL`) writes the scheme small, and drops line breaks, tabs, and blanks at either end. */
function isSameResolved(glob: string, value: string, verdict: boolean, effort?: Effort): boolean {
  if (!scheme.test(glob)) return true
  if (effort !== undefined && (effort.left -= ofReading.resolved * value.length) < 0) return false
  const address = URL.parse(value)?.href
  const pattern = glob.replace(scheme, (name) => name.toLowerCase())
  if (address === undefined || (address === value && pattern === glob)) return true
  return matchesPath(pattern, unescaped(address) ?? address, effort) === verdict
}

/** Where a relative path leads is for the server to say. */
function isElsewhere(glob: string, value: string): boolean {
  if (glob.startsWith('/')) return !value.startsWith('/')
  return value.startsWith('/') && glob.includes('/') && !/^[*?]/.test(glob)
}

/** Null also where finding them out took more than was left. */
function readingsWithin(effort: Effort | undefined, value: string): readonly string[] | null {
  if (effort === undefined) return readingsOf(value, { left: Infinity })
  let readings = effort.readings?.get(value)
  if (readings === undefined) {
    readings = readingsOf(value, effort)
    effort.readings?.set(value, readings)
  }
  return effort.left < 0 ? null : readings
}

/** What else the value says to readers that decode, normalize, or drop what is not shown, or blanks at the ends; null where they would not agree themselves. */
function readingsOf(value: string, effort: Effort): readonly string[] | null {
  if (value.length > longest) return null
  const alike = lookAlikes(value)
  if (alike === null) return null
  effort.left -= ofReading.plain * lengthOf([value, ...alike])
  if (effort.left < 0) return null
  const kept = decodings(value, (text) => text)
  // What is not shown may stand in an escape, or come out of one.
  const dropped = decodings(shown(value), shown)
  effort.left -= ofReading.decoded * lengthOf([...(kept ?? [value]), ...(dropped ?? [value])])
  if (kept === null || dropped === null) return null
  const readings = new Set([value, ...alike, ...kept, ...dropped])
  for (const text of readings) readings.add(trimmed(text))
  return [...readings]
}

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length, 0)

/** What comes out of a text that is decoded until nothing of it is escaped, with look-alikes; null where that has no end. */
function decodings(value: string, as: (text: string) => string): readonly string[] | null {
  const readings: string[] = []
  let text = value
  for (let round = 0; round <= rounds; round++) {
    const decoded = unescaped(text)
    if (decoded === null) return null
    const plain = as(decoded)
    if (plain === text) return readings
    const alike = lookAlikes(plain)
    if (alike === null) return null
    readings.push(plain, ...alike)
    text = plain
  }
  return null
}

/** As lenient readers decode: what is no escape stays as it is. Null where that is not UTF-8. */
function unescaped(text: string): string | null {
  if (!text.includes('%')) return text
  const byte = (_escape: string, hex: string): string => String.fromCharCode(Number(`0x${hex}`))
  const bytes = Buffer.from(latin1(text).replaceAll(/%([\da-f]{2})/gi, byte), 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : null
}
