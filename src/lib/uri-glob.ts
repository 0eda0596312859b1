// Globs for URIs, of which one thing has many spellings: `file:///%61`, `FILE:///a`, `file://localhost//a`, `file:///ａ`.
import { type Effort, isExact, isPlainPath, matchesLoosely, matchesPath } from './glob.ts'
import { lookAlikes } from './look-alikes.ts'
import { rememberedOf } from './remembered.ts'
import { trimmed, withoutTrailing } from './trailing.ts'

/** Letters, digits and `-._~` mean the same escaped (RFC 3986, 6.2.2.2); a slash does not. */
const needless = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i
/** Where a name ends, or a path goes on, to some readers alone: in `https://a\@b` one finds host a, another b */
const slash = /^[^?#]*(?:\\|%(?:2f|5c))|^[^:/?#]*:\/\/[^/?#]*%3f/i
/** Some take what stands behind it for the address (RFC 3986, C) */
const wrapped = /^url:/i
/** What is longer is held against no glob where it has look-alikes: no server need take it (RFC 9110, 4.1, has 8000) */
const longest = 8192

/** Steps of comparing that one spelling of a URI takes to be read, and each character of it */
const ofReading = { each: 128, character: 4 } as const
/** Spellings beyond which nobody follows what one is taken for; no text has half as many */
const mostSpellings = 32

/** What a URI says to its readers, whatever it is compared with: texts of which all must be told the same. */
interface Reading {
  /** It, and what it is taken for */
  readonly spellings: readonly string[]
  /** The same decoded, as they are and resolved */
  readonly plain: ReadonlySet<string>
  /** The same without their fragment, and of files their query, which whoever looks for it leaves out */
  readonly bare: ReadonlySet<string>
  /** The same without their query: where a name or a path ends, and no wildcard goes on */
  readonly short: ReadonlySet<string>
  /** What they say as files of this machine to who looks at nothing but the path; and which of that they say by no `file:` */
  readonly alone: ReadonlySet<string>
  readonly aloneElsewhere: ReadonlySet<string>
}

/**
 * As `matchesPath`, for a glob that holds `://`: true or false where every reader of the value is told the same, whether it
 * decodes, resolves, takes look-alikes for what they stand for, or does none of it; null where they are not, and for what is
 * no URI, or takes more steps than are left. The glob's own spelling is the normal one.
 */
export function matchesUri(glob: string, value: string, effort: Effort = { left: Infinity }): boolean | null {
  if (glob === value && isExact(glob)) return true
  const reading = readWithin(effort, value)
  if (reading === null) return null
  const { spellings, plain, bare, short, alone, aloneElsewhere } = reading
  const pattern = decoded(glob) ?? glob
  const read = (text: string): boolean | null => {
    const verdict = matchesPath(pattern, text, effort)
    return verdict === false && matchesLoosely(pattern, text, effort) !== false ? null : verdict
  }
  const isOfFiles = /^file:\/\/\//i.test(glob)
  // Of a glob that names no step nobody knows that it is about files of this machine alone.
  const isOfThese = isOfFiles && !/^file:[*?/]*$/i.test(glob)
  const texts = [
    ...plain,
    ...(glob.includes('#') ? [] : bare),
    ...(/[?#]/.test(glob) ? [] : short),
    ...(isOfFiles ? alone : []),
    ...(isOfThese ? aloneElsewhere : []),
  ]
  const [first = ''] = texts
  const verdict = read(first)
  if (verdict === null || texts.some((text) => read(text) !== verdict)) return null
  return !verdict && spellings.some((text) => matchesPath(glob, text, effort) !== false) ? null : verdict
}

const known = rememberedOf<Effort, Map<string, Reading | null>>(() => new Map())

/** Once for all that is compared by one effort; null also where it takes more than is left. */
function readWithin(effort: Effort, value: string): Reading | null {
  if (effort.left === Infinity) return readingOf(value, effort)
  const readings = known(effort)
  let reading = readings.get(value)
  if (reading === undefined) {
    reading = readingOf(value, effort)
    readings.set(value, reading)
  }
  return effort.left < 0 ? null : reading
}

/** Null where readers differ in what it is, or nobody knows what it is taken for. */
function readingOf(value: string, effort: Effort): Reading | null {
  const spellings = new Set([value])
  const [plain, bare, short, alone, aloneElsewhere] = [
    new Set<string>(),
    new Set<string>(),
    new Set<string>(),
    new Set<string>(),
    new Set<string>(),
  ]
  const add = (to: Set<string>, text: string): boolean => {
    const it = decoded(text)
    if (it !== null) to.add(it)
    return it !== null
  }
  for (const spelling of spellings) {
    effort.left -= ofReading.each + ofReading.character * spelling.length
    if (effort.left < 0 || spellings.size > mostSpellings) return null
    const uri = isPlainPath('://', spelling) ? URL.parse(spelling) : null
    if (uri === null || [needless, slash, wrapped].some((unclear) => unclear.test(spelling))) return null
    const isFile = uri.protocol === 'file:'
    const to = isFile ? alone : aloneElsewhere
    const beside = isFile ? /[?#].*$/s : /#.*$/s
    const said = [spelling, ...resolvedOf(uri)]
    const isRead =
      said.every((text) => add(plain, text)) &&
      said.every((text) => add(bare, text.replace(beside, ''))) &&
      said.every((text) => add(short, text.replace(/[?#].*$/s, ''))) &&
      pathsAlone(spelling, uri).every((path) => add(to, `file://${path}`))
    const alike = isRead ? alikeOf(spelling) : null
    if (alike === null) return null
    // Who decodes first resolves what comes out: a line break is dropped, a fragment is one.
    const plainly = decoded(spelling) ?? spelling
    for (const text of decoded(plainly) === null ? alike : [...alike, plainly]) spellings.add(text)
    spellings.add(trimmed(spelling))
  }
  return { spellings: [...spellings], plain, bare, short, alone, aloneElsewhere }
}

/** As it is resolved, and as a host and a path are found that are there; changes the URI to that. */
function resolvedOf(uri: URL): readonly string[] {
  uri.username = ''
  uri.password = ''
  const resolved = uri.href
  uri.pathname = uri.pathname.replaceAll(/\/{2,}/g, '/')
  // A resolver takes a name with a dot at its end, or in capitals, for the one without; the parser leaves both, of some schemes.
  uri.hostname = withoutTrailing(uri.hostname.toLowerCase(), ['.', '%2e'])
  return [resolved, uri.href, ...dottedOf(uri)]
}

/** With what a resolver of names takes for a dot in a host, as in `a。b`, as that; none where the host has letters of its own. */
function dottedOf(uri: URL): readonly string[] {
  const host = uri.hostname.includes('%') ? URL.parse(`https://${uri.hostname}/`)?.hostname : undefined
  if (host === undefined || host.includes('xn--')) return []
  uri.hostname = withoutTrailing(host, ['.'])
  return [uri.href]
}

/** How those who take a URI apart by the generic expression find an authority and a path (RFC 3986, B): `http:/a` has none, and that path */
const generic = /^[^:/?#]+:(?:\/\/(?<authority>[^/?#]*))?(?<path>[^?#]*)/

/**
 * The paths that it has for who opens files and looks at nothing else: a host is as good as none there, and so is a scheme that names
 * no host.
 */
function pathsAlone(spelling: string, { protocol, hostname, pathname }: URL): readonly string[] {
  const { authority = '', path = '' } = generic.exec(spelling)?.groups ?? {}
  const said = [
    { host: hostname, path: pathname },
    { host: authority.replace(/^.*@/s, '').replace(/:\d*$/, '').toLowerCase(), path },
  ]
  return said
    .filter(
      ({ host, path: it }) => /^\/|^$/.test(it) && (protocol === 'file:' || /^(?:localhost)?$/.test(host)),
    )
    .flatMap((one) => [one.path, one.path.replaceAll(/\/(?:\.?\/)+/g, '/').replace(/\/\.$/, '/')])
}

/** What it is taken for by those who normalize, or drop what is not shown, before they decode or behind it; null where that can't be told. */
function alikeOf(value: string): readonly string[] | null {
  const plain = decoded(value) ?? value
  if (/^[\x20-\x7e]*$/.test(plain)) return []
  if (value.length > longest) return null
  const [of, ofPlain] = [lookAlikes(value), lookAlikes(plain)]
  return of === null || ofPlain === null ? null : [...of, ...ofPlain.filter((text) => text !== plain)]
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
