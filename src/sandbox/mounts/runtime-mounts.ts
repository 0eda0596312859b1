// What every program needs to start: the runtime that the profile grants, as the host lays it out.
import { readlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { errnoOf, isMissing } from '../../lib/missing.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { Grant } from '../../schema/settings.ts'
import { findMount } from './mount-source.ts'
import type { Link, Mount } from '../spec.ts'

/** Folders of the root that are links into /usr on most hosts, and folders of their own on the others. */
const rootFolders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

/**
 * Returns the mounts of the profile's reads, each at its own path, what programs of /usr start with, and the root's
 * links into /usr as the host has them. What this host lacks is left out; what is granted twice is mounted once.
 */
export const planRuntime = async (
  reads: readonly Grant[],
): Promise<{ mounts: readonly Mount[]; links: readonly Link[] }> => {
  const mounts: Mount[] = []
  const links: Link[] = []
  const hasUsr = reads.some(({ path }) => path === '/usr')
  const add = async (wanted: Pick<Mount, 'target' | 'reason' | 'origin'>): Promise<void> => {
    const mount = await findMount({ ...wanted, source: wanted.target, access: 'read' })
    if (mount !== null && !mounts.some((planned) => shows(planned, mount))) mounts.push(mount)
  }
  // Shorter paths first: layers of a profile may grant a folder and, again, what lies in it.
  for (const { path, reason } of reads.toSorted((one, other) => one.path.length - other.path.length))
    if (!hasUsr || !isRootLink(path)) await add({ target: path, reason, origin: 'profile' })
  const reason = 'programs of the runtime start with it'
  if (hasUsr)
    for (const path of rootFolders) {
      const text = readRootLink(path)
      if (text === null) await add({ target: path, reason, origin: 'runtime' })
      else links.push({ path, text })
    }
  await add({ target: '/etc/ld.so.cache', reason, origin: 'runtime' })
  return { mounts, links }
}

const shows = ({ target, source }: Mount, mount: Mount): boolean =>
  isWithin(mount.target, target) && join(source, relative(target, mount.target)) === mount.source

const isRootLink = (path: string): boolean => rootFolders.includes(path) && readRootLink(path) !== null

// Only a link into /usr is repeated: /usr is mounted, and what else a link may lead to was not granted.
const readRootLink = (path: string): string | null => {
  try {
    const text = readlinkSync(path)
    return isWithin(join('/', text), '/usr') ? text : null
  } catch (error) {
    if (isMissing(error) || errnoOf(error) === 'EINVAL') return null
    throw error
  }
}
