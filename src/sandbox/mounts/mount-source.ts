// From the path that somebody wrote to the file that is meant: real path, kind, device and inode.
import { type BigIntStats, lstatSync, realpathSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { SallyportError } from '../../errors.ts'
import { isMissing } from '../../lib/missing.ts'
import { isNormal } from '../../lib/path-overlap.ts'
import type { Mount } from '../spec.ts'

/** A mount before anybody has looked at its source. */
export type WantedMount = Pick<Mount, 'source' | 'target' | 'access' | 'reason' | 'origin'>

/** Returns the mount of what is there. Throws ERR_MOUNT_REFUSED where nothing is, and as `findMount` does. */
export const needMount = async (server: string, wanted: WantedMount): Promise<Mount> => {
  const mount = await findMount(wanted)
  if (mount === null)
    throw new SallyportError(
      'ERR_MOUNT_REFUSED',
      `source ${wanted.source} of mount ${wanted.target} for ${server} does not exist; create it or correct the path`,
      { server, source: wanted.source, target: wanted.target },
    )
  return mount
}

/**
 * Returns the mount with its source's real path, kind, device and inode, or null where nothing is there.
 *
 * Throws ERR_MOUNT_REFUSED where a path is not normal, or the source is neither file nor folder.
 */
export const findMount = async (wanted: WantedMount): Promise<Mount | null> => {
  if (!isNormal(wanted.source) || !isNormal(wanted.target))
    throw new SallyportError(
      'ERR_MOUNT_REFUSED',
      `mount ${JSON.stringify(wanted.source)} at ${JSON.stringify(wanted.target)} is not two absolute paths without dots, trailing slashes and control characters; write them so`,
      { source: wanted.source, target: wanted.target },
    )
  try {
    const { source, found } = isOfTheMachine(wanted) ? lookAtOnce(wanted.source) : await look(wanted.source)
    return { ...wanted, source, kind: kindOf(found, wanted), dev: found.dev, ino: found.ino }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Says whether the source lies where the daemon's own programs do, not somewhere that may be slow or hang, such as a share. */
export const isOfTheMachine = ({ origin }: Pick<Mount, 'origin'>): boolean =>
  origin === 'runtime' || origin === 'package' || origin === 'program'

interface Look {
  readonly source: string
  readonly found: BigIntStats
}

const look = async (path: string): Promise<Look> => {
  const source = await realpath(path)
  return { source, found: await lstat(source, { bigint: true }) }
}

// What another thread would be woken for takes a tenth of that itself.
const lookAtOnce = (path: string): Look => {
  const source = realpathSync.native(path)
  return { source, found: lstatSync(source, { bigint: true }) }
}

const kindOf = (found: BigIntStats, { source, target }: WantedMount): Mount['kind'] => {
  if (found.isDirectory()) return 'directory'
  if (found.isFile()) return 'file'
  throw new SallyportError(
    'ERR_MOUNT_REFUSED',
    `source ${source} of mount ${target} is a device, socket or pipe; only files and folders are mounted`,
    { source, target },
  )
}
