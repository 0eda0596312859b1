// Whether anybody but its owner could put something else at a path: the file, each folder above it, each link on the way.
import { lstat, readlink } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Stats } from 'node:fs'

/** What a walk along a path found. */
export interface WalkedPath {
  /** The path with every symbolic link resolved */
  readonly real: string
  /** The first part that somebody else can change, or null */
  readonly fault: PathFault | null
}

export interface PathFault {
  readonly path: string
  /** What is wrong with it, such as `is writable by its group (mode 0775)` */
  readonly why: string
  /** The command that mends it */
  readonly mend: string
}

/**
 * Walks an absolute path from the root, link by link. Every part must belong to root or to one of `owners`, and nobody
 * else may be able to write to it; a sticky folder of root's, such as /tmp, is fine, since what lies in it is judged too.
 * Rejects with the system's error where a part does not exist or cannot be read.
 */
export async function walkPath(path: string, owners: readonly number[]): Promise<WalkedPath> {
  const trusted = new Set([0, ...owners])
  let real = '/'
  let fault = faultOf('/', await lstat('/'), trusted)
  let links = 0
  const rest = path.split(sep).filter((part) => part !== '' && part !== '.')
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (part === '..') {
      real = dirname(real)
      continue
    }
    const next = join(real, part)
    const stats = await lstat(next)
    fault ??= faultOf(next, stats, trusted)
    if (!stats.isSymbolicLink()) {
      real = next
      continue
    }
    if (++links > 40) throw Object.assign(new Error(`ELOOP: too many links, '${path}'`), { code: 'ELOOP' })
    const target = await readlink(next)
    rest.unshift(...target.split(sep).filter((step) => step !== '' && step !== '.'))
    if (target.startsWith(sep)) real = '/'
  }
  return { real, fault }
}

/** Says what is wrong with one file, folder or link whose status is known, or null. */
export function faultOf(path: string, stats: Stats, trusted: ReadonlySet<number>): PathFault | null {
  if (!trusted.has(stats.uid)) {
    const names = [...trusted].join(' or ')
    return {
      path,
      why: `belongs to uid ${stats.uid}, not to uid ${names}`,
      mend: `chown ${Math.max(...trusted)} ${path}`,
    }
  }
  if (stats.isSymbolicLink()) return null
  if (stats.isDirectory() && stats.uid === 0 && (stats.mode & 0o1000) !== 0) return null
  const mode = (stats.mode & 0o7777).toString(8).padStart(4, '0')
  if ((stats.mode & 0o002) !== 0)
    return { path, why: `is writable by everybody (mode ${mode})`, mend: `chmod go-w ${path}` }
  if ((stats.mode & 0o020) !== 0)
    return { path, why: `is writable by its group (mode ${mode})`, mend: `chmod g-w ${path}` }
  return null
}
