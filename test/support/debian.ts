// A Debian for images, of packages that are installed here, since no registry is there to pull a base from.
import { execFile } from 'node:child_process'
import { lstat, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface DebianPart {
  /** Absolute paths of what the packages brought, folders and links themselves among them, in order */
  readonly paths: readonly string[]
  /** What dpkg has to say of them there: /var/lib/dpkg/status */
  readonly status: string
}

const dependencies = ['--installed', '--recurse', '--no-recommends', '--no-suggests', '--no-enhances']
const against = ['--no-conflicts', '--no-breaks', '--no-replaces']
/** What nobody reads there, and the compiler's largest parts that are for other options than any of ours. */
const unused =
  /^\/usr\/share\/(?:doc|man|info|locale)\/|\/lto1$|-lto-dump-|\/lib[alt]san\.|-ld\.gold$|\/libgprofng/

/**
 * Finds what these packages, all that they depend on and the essential ones have brought to this machine, with the
 * compiler's link among the alternatives. No script of theirs has run there: no users and no caches are part of it.
 */
export const debianPart = async (packages: readonly string[]): Promise<DebianPart> => {
  const all = await run('dpkg-query', ['-W', '-f=${db:Status-Status} ${Essential} ${Package}\n'])
  const here = [...all.stdout.matchAll(/^installed (\w+) (\S+)$/gm)]
  const essential = here.flatMap(([, isEssential, name = '']) => (isEssential === 'yes' ? [name] : []))
  const needed = await run('apt-cache', ['depends', ...dependencies, ...against, ...packages, ...essential])
  const wanted = new Set(needed.stdout.split('\n'))
  const names = here.flatMap(([, , name = '']) => (wanted.has(name) ? [name] : []))
  const { stdout } = await run('dpkg-query', ['--listfiles', ...names], { maxBuffer: 2 ** 26 })
  const listed = stdout.split('\n').filter((line) => line.startsWith('/') && !unused.test(line))
  const places = await Promise.all([...listed, '/usr/bin/cc', '/etc/alternatives/cc'].map(placeOf))
  const paths = [...new Set(places.flatMap((path) => path ?? []))].toSorted()
  return { paths, status: await statusOf(new Set(names)) }
}

const statusOf = async (names: ReadonlySet<string>): Promise<string> => {
  const stanzas = (await readFile('/var/lib/dpkg/status', 'utf8')).split(/\n\n+/)
  const theirs = stanzas.filter((stanza) => names.has(/^Package: (\S+)$/m.exec(stanza)?.[1] ?? ''))
  return `${theirs.join('\n\n')}\n`
}

/** The path with no link before its last part, or null where it is not here (a diversion, a file that was removed). */
const placeOf = async (path: string): Promise<string | null> => {
  try {
    const place = path === '/.' ? '/' : join(await realpath(dirname(path)), basename(path))
    await lstat(place)
    return place === '/' ? null : place
  } catch {
    return null
  }
}
