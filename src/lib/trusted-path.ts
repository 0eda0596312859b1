// Whether a path leads where its operator thinks: nobody else may change the file, a folder, or a link on the way.
import { type BigIntStats, lstatSync, readlinkSync } from 'node:fs'
import { lstat, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isPrivateGroup } from './private-group.ts'

/** Why a path can't be trusted: the place, and what is wrong with it, a verb phrase. */
export interface Distrust {
  readonly place: string
  readonly what: string
  readonly mend: string
}

/** Where a path leads, or why it is not believed. */
export type TrustedPath =
  | { readonly isTrusted: true; readonly real: string; readonly found: BigIntStats }
  | { readonly isTrusted: false; readonly distrust: Distrust }

/** How the entries on a way are looked at. */
export interface Look {
  entry(path: string): BigIntStats | Promise<BigIntStats>
  link(path: string): string | Promise<string>
}

/** On another thread: a share that hangs holds up whoever waits for the path, and nobody else. */
export const apart: Look = { entry: (path) => lstat(path, { bigint: true }), link: (path) => readlink(path) }

/** At once, a tenth of the time: for what a launch needs of the machine itself. */
export const atOnce: Look = {
  entry: (path) => lstatSync(path, { bigint: true }),
  link: (path) => readlinkSync(path),
}

const hopLimit = 40

/**
 * Follows a path from the root, component by component, links included, as the kernel would.
 *
 * Trusted are root and `owners`. Each folder on the way, and the file, must belong to one of them and be writable by
 * nobody else; write permission for group 0, or for a group in which nobody but its owner is, is none for anybody
 * else. In a folder that belongs to root and is sticky, such
 * as /tmp, an entry is safe where it belongs to one of them, since nobody else can replace it. Every folder that holds
 * a link of the way is judged by the same rule, so that a farm of links is only as good as its folder.
 *
 * Access lists are not read: a write permission in one shows as the group's, and is found unless the group is such a one.
 * Throws what lstat(2) throws, where something is missing.
 */
export const followTrusted = async (
  path: string,
  owners: readonly number[],
  look: Look = apart,
): Promise<TrustedPath> => {
  const trusted: ReadonlySet<bigint> = new Set([0n, ...owners.map(BigInt)])
  let place = '/'
  let found = await look.entry(place)
  let rest = path.split('/').filter((part) => part !== '' && part !== '.')
  for (let hops = 0; ;) {
    const distrust = await judge(place, found, trusted)
    if (distrust !== null) return { isTrusted: false, distrust }
    const [part, ...further] = rest
    if (part === undefined) return { isTrusted: true, real: place, found }
    rest = further
    if (part === '..') {
      place = join(place, '..')
      found = await look.entry(place)
      continue
    }
    const next = join(place, part)
    const entry = await look.entry(next)
    if (isSticky(found) && !trusted.has(entry.uid))
      return { isTrusted: false, distrust: foreign(next, entry) }
    if (!entry.isSymbolicLink()) {
      place = next
      found = entry
      continue
    }
    if (++hops > hopLimit)
      return { isTrusted: false, distrust: { place: next, what: 'is a link in a circle', mend: 'remove it' } }
    const text = await look.link(next)
    rest = [...text.split('/').filter((name) => name !== '' && name !== '.'), ...rest]
    if (text.startsWith('/')) {
      place = '/'
      found = await look.entry(place)
    }
  }
}

const judge = async (
  place: string,
  found: BigIntStats,
  trusted: ReadonlySet<bigint>,
): Promise<Distrust | null> => {
  if (!trusted.has(found.uid)) return foreign(place, found)
  if (isSticky(found)) return null
  if ((found.mode & 0o002n) !== 0n)
    return { place, what: 'can be written by everybody', mend: `chmod o-w ${place}` }
  if ((found.mode & 0o020n) !== 0n && !(await isHarmless(found)))
    return { place, what: `can be written by group ${found.gid}`, mend: `chmod g-w ${place}` }
  return null
}

// Many systems give each user a group of their own and a umask of 002: nobody else gains by that bit.
const isHarmless = async ({ uid, gid }: BigIntStats): Promise<boolean> =>
  gid === 0n || (await isPrivateGroup(Number(gid), Number(uid)))

// Only root's: another owner of a sticky folder may still replace what lies in it.
const isSticky = (found: BigIntStats): boolean =>
  found.isDirectory() && found.uid === 0n && (found.mode & 0o1000n) !== 0n && (found.mode & 0o022n) !== 0n

const foreign = (place: string, found: BigIntStats): Distrust => ({
  place,
  what: `belongs to uid ${found.uid}`,
  mend: 'chown it to root or to the daemon’s user, or use another copy',
})
