// Whether the sandbox's user may read, and where it must write, what is mounted for it: better said now than by EACCES.
import { statSync } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { SallyportError } from '../../errors.ts'
import { isOfTheMachine } from './mount-source.ts'
import type { Mount } from '../spec.ts'

/** Who will be at the sources. */
export interface SandboxUser {
  /** Host ids under which the sandbox tool starts */
  readonly uid: number
  readonly gid: number
  /** Whether these are this process's own ids, so that access(2) answers for them, access lists included */
  readonly isSelf: boolean
}

/**
 * Throws ERR_MOUNT_REFUSED where the user may not use the mount as it is meant.
 *
 * A root daemon stages the sources, so the folders above them do not matter; it judges by owner and mode, and does not
 * read access lists, which a uid made for one sandbox is never in.
 */
export const judgeReachable = async (server: string, mount: Mount, user: SandboxUser): Promise<void> => {
  const needed = neededBits(mount)
  if (user.isSelf ? await isAllowed(mount.source, needed) : await isAllowedByMode(mount, needed, user)) return
  const who = user.isSelf ? `this daemon’s user ${user.uid}` : `the sandbox’s user ${user.uid}`
  const mend = user.isSelf ? 'change its mode or owner' : 'set run_as to a user who may, or change its mode'
  throw new SallyportError(
    'ERR_MOUNT_REFUSED',
    `mount of ${mount.source} at ${mount.target} for ${server} cannot be ${mount.access === 'write' ? 'written' : 'read'} by ${who}; ${mend}`,
    { server, source: mount.source, target: mount.target, uid: user.uid },
  )
}

const neededBits = ({ access: wanted, kind, origin }: Mount): number =>
  constants.R_OK |
  (wanted === 'write' ? constants.W_OK : 0) |
  (kind === 'directory' || origin === 'program' ? constants.X_OK : 0)

const isAllowed = async (path: string, needed: number): Promise<boolean> =>
  access(path, needed).then(
    () => true,
    () => false,
  )

const isAllowedByMode = async (mount: Mount, needed: number, { uid, gid }: SandboxUser): Promise<boolean> => {
  const found = isOfTheMachine(mount) ? statSync(mount.source) : await stat(mount.source)
  // The kernel looks at one class only: an owner without a bit is refused though others have it.
  const shift = found.uid === uid ? 6 : found.gid === gid ? 3 : 0
  return ((found.mode >> shift) & needed) === needed
}
