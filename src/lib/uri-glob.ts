// Globs for URIs, of which one thing has many spellings: `file:///%61`, `FILE:///a`, `file://localhost//a`, `file:///ａ`.
import { type Effort, isPlainPath, matchesLoosely, matchesPath } from './glob.ts'
import { lookAlikes } from './look-alikes.ts'
import { withoutTrailing } from './trailing.ts'

/** Letters, digits and `-._~` mean the same escaped (RFC 3986, 6.2.2.2); a slash does not. */
const needless = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i
/** Where a name ends, or a path goes on, to some readers alone: in `https://a\@b` one finds host a, another b */
const slash = /^[^?#]*(?:\\|%(?:2f|5c))/i
/** What is longer is held against no glob where it has look-alikes: no server need take it (RFC 9110, 4.1, has 8000) */
const longest = 8192

/**
 * As `matchesPath`, for a glob that holds `://`: true or false where every reader of the value is told the same, whether it
 * decodes, resolves, takes look-alikes for what they stand for, or does none of it; null where they are not, and for what is
 * no URI, or takes more steps than are left. The glob's own spelling is the normal one.
 */
export function matchesUri(glob: string, value: string, effort?: Effort): boolean | null {
  if (glob === value) return true
  const uri = URL.parse(value)
  if (uri === null || needless.test(value) || slash.test(value)) return null
  uri.username = ''
  uri.password = ''
  const resolved = uri.href
  uri.pathname = uri.pathname.replaceAll(/\/{2,}/g, '/')
  // A resolver takes a name with a dot at its end, or in capitals, for the one without; the parser leaves both, of some schemes.
  uri.hostname = withoutTrailing(uri.hostname.toLowerCase(), ['.', '%2e'])
  const pattern = decoded(glob) ?? glob
  const read = (spelling: string): boolean | null => {
    const plain = decoded(spelling)
    const verdict = plain === null ? null : matchesPath(pattern, plain, effort)
    return verdict === false && plain !== null && matchesLoosely(pattern, plain, effort) !== false
      ? null
      : verdict
  }
  // Whoever looks for it leaves the fragment out, and of a file the query.
  const dropped = uri.protocol === 'file:' ? /[?#].*$/s : /#.*$/s
  const bare = glob.includes('#') ? value : value.replace(dropped, '')
  const verdicts = [value, resolved, uri.href, bare, ...pathAlone(glob, uri)].map(read)
  const [first = null] = verdicts
  if (!verdicts.every((verdict) => verdict === first)) return null
  if (first === null || (!first && matchesPath(glob, value, effort) !== false)) return null
  return isAlike(glob, value, first, effort) ? first : null
}

/**
 * What it says to who opens files and looks at nothing but the path: a host is as good as none there, and so is a scheme that names
 * no host. Empty where that is what it says to all.
 */
function pathAlone(glob: string, { protocol, host, pathname, href }: URL): readonly string[] {
  if (!/^file:\/\/\//i.test(glob) || !/^\/|^$/.test(pathname)) return []
  // Of a glob that names no step nobody knows that it is about files of this machine alone.
  const isElsewhere = (host !== '' && host !== 'localhost') || /^file:[*?/]*$/i.test(glob)
  if (protocol !== 'file:' && isElsewhere) return []
  const path = `file://${pathname}`
  return path === href ? [] : [path]
}

/** Whether those who normalize, or drop what is not shown, are told the same, before they decode or behind it. */
function isAlike(glob: string, value: string, verdict: boolean, effort: Effort | undefined): boolean {
  const plain = decoded(value) ?? value
  if (/^[\x20-\x7e]*$/.test(plain)) return true
  if (value.length > longest) return false
  return [value, plain].every(
    (spelling) =>
      lookAlikes(spelling)?.every(
        (text) =>
          text === spelling || (isPlainPath(glob, text) && matchesUri(glob, text, effort) === verdict),
      ) === true,
  )
}

/** What is escaped once; null for what is escaped twice, or not as UTF-8. What a glob or a path gives a meaning stays escaped. */
function decoded(text: string): string | null {
  try {
    const kept = text.replaceAll(/%(?:2a|2f|3f|5c)/gi, (escape) => `%25${escape.slice(1).toUpperCase()}`)
    const plain = decodeURIComponent(kept)
    return /%(?!2A|2F|3F|5C)[\da-f]{2}/i.test(plain) ? null : plain
  } catch {
    return null
  }
}
