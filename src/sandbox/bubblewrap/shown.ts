// What one path shows in a sandbox that is planned: the walk that the kernel would make, over the same plan.
import { accessSync, constants, lstatSync, readlinkSync, type Stats } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { errnoOf, isMissing } from '../../lib/missing.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { FilesystemPlan } from '../mounts/filesystem.ts'
import type { SandboxUser } from '../mounts/reachable.ts'
import { credentialFolder, doorTarget, type Mount } from '../spec.ts'
import { deviceLinks, deviceNodes, initTarget, scratchFolders } from './argv.ts'
import type { ProcMask } from './masks.ts'
import type { Entry, Got } from './shown-entry.ts'
import { procEntry } from './shown-proc.ts'

export interface Shown {
  readonly gets: Got
  /** Why, a clause without a full stop */
  readonly because: string
  /** Where it leads in the sandbox, after symbolic links */
  readonly path: string
  /** The mount that shows it, or in which it is looked for in vain */
  readonly mount: Mount | null
}

/** A sandbox, as far as paths go. */
export interface ShownPlan extends Pick<FilesystemPlan, 'mounts' | 'links' | 'files'> {
  readonly hasDoor: boolean
  readonly hasCredentialFiles: boolean
  readonly procMasks: readonly ProcMask[]
}

/** As many links as the kernel follows. */
const linkLimit = 40

/** Returns what a path, absolute, is to the server's user in the sandbox of a plan. Looks at this machine's files as they are now. */
export const showPath = (plan: ShownPlan, user: SandboxUser, asked: string): Shown => {
  let names = namesOf(asked)
  let at = '/'
  for (let links = 0; ;) {
    const entry = entryAt(plan, user, at)
    if ('link' in entry) {
      if (++links > linkLimit)
        return { gets: 'absent', because: 'its links lead in a circle', path: at, mount: null }
      names = [...namesOf(entry.link), ...names]
      at = entry.link.startsWith('/') ? '/' : dirname(at)
      continue
    }
    const { mount = null } = entry
    const [name, ...rest] = names
    if (name === undefined) return { gets: entry.gets, because: entry.because, path: at, mount }
    if (!entry.mayEnter) {
      const isShut = entry.gets === 'closed' || entry.gets === 'absent'
      const because = isShut ? entry.because : `${at} is no folder that holds anything`
      return { gets: isShut ? entry.gets : 'absent', because, path: join(at, ...names), mount }
    }
    names = rest
    at = name === '..' ? dirname(at) : join(at, name)
  }
}

const namesOf = (path: string): readonly string[] =>
  path.split('/').filter((name) => name !== '' && name !== '.')

// In the order opposite to that in which the sandbox is built: what comes later lies on top.
const entryAt = (plan: ShownPlan, user: SandboxUser, at: string): Entry => {
  const link = [...plan.links, ...deviceLinks].find(({ path }) => path === at)
  if (link !== undefined) return { link: link.text }
  if (at === initTarget) return own('Sallyport’s own first process is started from it')
  if (at === doorTarget && plan.hasDoor)
    return { gets: 'socket', because: 'the way out, behind which the proxy judges', mayEnter: false }
  const mount = plan.mounts.findLast(({ target }) => isWithin(at, target))
  if (mount !== undefined) return mountedEntry(mount, user, at)
  if (plan.files.some(({ target }) => target === at))
    return own('Sallyport writes it for the sandbox; the host’s is not there')
  if (plan.hasCredentialFiles && isWithin(at, credentialFolder))
    return scratch('a folder in memory for the secret files of calls')
  if (scratchFolders.some((folder) => isWithin(at, folder)))
    return scratch('scratch space of the sandbox’s own, empty at first; the host’s is not there')
  if (isWithin(at, '/proc')) return procEntry(at, plan.procMasks)
  if (deviceNodes.some((name) => at === `/dev/${name}`))
    return { gets: 'write', because: 'one of the harmless devices of every sandbox', mayEnter: false }
  const held = heldIn(plan, at)
  if (held.length === 0) return absent('nothing grants it')
  const shown =
    held.length > 12 ? `${held.slice(0, 12).join(', ')} and ${held.length - 12} more` : held.join(', ')
  return {
    gets: 'partly',
    because: `a folder of the sandbox’s own, read-only, which holds only ${shown}`,
    mayEnter: true,
  }
}

const own = (because: string): Entry => ({ gets: 'own', because, mayEnter: false })
const scratch = (because: string): Entry => ({ gets: 'private', because, mayEnter: true })
const absent = (because: string, mount?: Mount): Entry => ({
  gets: 'absent',
  because,
  mayEnter: false,
  ...(mount && { mount }),
})

// What is planned below a folder that nothing else makes, by its names there.
const heldIn = (plan: ShownPlan, folder: string): readonly string[] => {
  const planned = [
    '/proc',
    initTarget,
    ...scratchFolders,
    ...deviceNodes.map((name) => `/dev/${name}`),
    ...[...plan.links, ...deviceLinks].map(({ path }) => path),
    ...[...plan.mounts, ...plan.files].map(({ target }) => target),
    ...(plan.hasDoor ? [doorTarget] : []),
    ...(plan.hasCredentialFiles ? [credentialFolder] : []),
  ]
  const below = planned.filter((path) => path !== folder && isWithin(path, folder))
  return [...new Set(below.map((path) => relative(folder, path).split('/')[0] ?? ''))].sort()
}

// A host file in the mount that shows it. A walk came here through folders that it may enter, so the parent can be looked at.
const mountedEntry = (mount: Mount, user: SandboxUser, at: string): Entry => {
  const source = join(mount.source, relative(mount.target, at))
  const found = look(source)
  if (found === 'shut') return { ...shut(mount), mayEnter: false }
  if (found === null) {
    const isCreated = mount.access === 'write' && isAllowed(dirname(source), user, constants.W_OK)
    return isCreated
      ? {
          gets: 'write',
          because: `nothing is there yet; the server may make it: ${mount.reason}`,
          mount,
          mayEnter: true,
        }
      : absent(`${mount.target} is shown, and this machine has nothing there`, mount)
  }
  if (found.isSymbolicLink() && at !== mount.target) return { link: readlinkSync(source) }
  const mayEnter = found.isDirectory() && isAllowed(source, user, constants.X_OK)
  const mayRead = isAllowed(source, user, constants.R_OK)
  const mayWrite = isAllowed(source, user, constants.W_OK)
  if (found.isBlockDevice() || found.isCharacterDevice())
    return { gets: 'closed', because: 'a device, which opens for nobody in a mount', mount, mayEnter }
  if (found.isSocket())
    return mayWrite
      ? {
          gets: 'socket',
          because: `a socket to connect to, also through a mount to read: ${mount.reason}`,
          mount,
          mayEnter,
        }
      : { ...shut(mount), mayEnter }
  // The kernel asks a read-only mount about files and folders alone.
  const isWritable = mayWrite && (mount.access === 'write' || found.isFIFO())
  if (!mayRead && !isWritable) return { ...shut(mount), mayEnter }
  const because = mayRead ? mount.reason : `${mount.reason}; its mode lets the server only write`
  return { gets: isWritable ? 'write' : 'read', because, mount, mayEnter }
}

const shut = (mount: Mount) =>
  ({
    gets: 'closed',
    because: `${mount.target} is shown, but its mode shuts it to the server’s user`,
    mount,
  }) as const

const look = (path: string): Stats | 'shut' | null => {
  try {
    return lstatSync(path)
  } catch (error) {
    if (isMissing(error)) return null
    if (errnoOf(error) === 'EACCES') return 'shut'
    throw SallyportError.from(error)
  }
}

/** As `judgeReachable` does: access(2) answers for ourselves, owner and mode for a user of the sandbox's own. */
const isAllowed = (path: string, user: SandboxUser, needed: number): boolean => {
  if (!user.isSelf) {
    const { uid, gid, mode } = lstatSync(path)
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0
    return ((mode >> shift) & needed) === needed
  }
  try {
    accessSync(path, needed)
    return true
  } catch {
    return false
  }
}
