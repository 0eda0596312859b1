// The folder that holds the sockets: made, or refused when somebody else could have a hand in it.
import { existsSync, type Stats } from 'node:fs'
import { access, chmod, chown, constants, lstat, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { SallyportError } from '../errors.ts'
import { makeFolder } from '../lib/folder.ts'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { isPrivateGroup } from '../lib/private-group.ts'
import { maxSocketPath } from '../lib/socket-path.ts'

const options = '--runtime, --state, $SALLYPORT_RUNTIME_DIR or $SALLYPORT_STATE_DIR'

/** Where a runtime directory keeps its parts. */
export interface RuntimePaths {
  readonly directory: string
  readonly hostDirectory: string
  readonly hostSocket: string
  readonly operatorDirectory: string
  readonly operatorSocket: string
}

/** Names the parts of a runtime directory; touches nothing. */
export function runtimePaths(directory: string): RuntimePaths {
  return {
    directory,
    hostDirectory: join(directory, 'host'),
    hostSocket: join(directory, 'host', 'host.sock'),
    operatorDirectory: join(directory, 'operator'),
    operatorSocket: join(directory, 'operator', 'operator.sock'),
  }
}

/** Who may use a socket, for whom it refuses. */
export const whoMayUse = (path: string): string =>
  basename(path) === 'operator.sock'
    ? 'it is for root and the daemon’s own user'
    : 'the operator admits hosts with host_group'

/**
 * Makes the runtime directory (0711) with `host` (0700, or 0750 for the group) and `operator` (0700) in it.
 * Throws ERR_RUNTIME_UNSAFE where one can't be made, written or given to the group, is a symlink, belongs to another user, can be replaced by
 * one, or would have its mode changed though it has been something else's.
 */
export async function prepareRuntimeDir(directory: string, hostGid: number | null): Promise<RuntimePaths> {
  const paths = runtimePaths(directory)
  const length = Buffer.byteLength(paths.operatorSocket)
  if (length > maxSocketPath)
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `socket path ${paths.operatorSocket} has ${length} bytes and the kernel takes ${maxSocketPath}; choose a shorter --runtime`,
    )
  make(dirname(directory), 0o755)
  await checkParents(directory)
  await ownFolder(directory, 0o711, ['daemon.lock', 'operator'])
  await ownFolder(paths.hostDirectory, hostGid === null ? 0o700 : 0o750, ['host.sock'], hostGid)
  await ownFolder(paths.operatorDirectory, 0o700, ['operator.sock'])
  return paths
}

/**
 * Makes the state directory (0700) with what is missing above it, or takes one that is ours already. Throws ERR_RUNTIME_UNSAFE
 * where it can't be made or written, is somebody else's, or would be closed to others though it has been something else's.
 */
export async function prepareStateDir(directory: string): Promise<void> {
  await ownFolder(directory, 0o700, ['daemon.lock', 'daemon.log', 'journal', 'programs.json', 'runs'])
}

// Makes a folder with that mode, or takes one that is ours already: an empty one, or one that has one of these in it. Any other
// may be somebody's home, or the machine's /, which must not lose the mode that it has.
async function ownFolder(
  directory: string,
  mode: number,
  marks: readonly string[],
  gid: number | null = null,
): Promise<void> {
  make(directory, 0o700)
  const found = await lstat(directory)
  const uid = process.geteuid?.() ?? -1
  if (!found.isDirectory()) throw unsafe(directory, 'is not a folder (symbolic links are not followed)')
  if (found.uid !== uid) throw unsafe(directory, `belongs to uid ${found.uid}, not to uid ${uid}`)
  await access(directory, constants.W_OK).catch((error: unknown) => {
    if (errnoOf(error) === 'EROFS') throw unsafe(directory, 'is on a file system that is read-only')
  })
  const now = found.mode & 0o7777
  const isAsOurs = (its: Stats): boolean => (its.mode & 0o7777) === mode && (gid === null || its.gid === gid)
  // Looked at once more after what is in it: another daemon that starts now gives it its mode before it puts anything in.
  if (!isAsOurs(found) && !(await isOurs(directory, marks)) && !isAsOurs(await lstat(directory)))
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `folder ${directory} has other things in it, and its mode ${octal(now)} would become ${octal(mode)}; choose one that is empty or not there yet with ${options}`,
      { path: directory },
    )
  if (gid !== null && found.gid !== gid) await giveToGroup(directory, uid, gid)
  if (now !== mode) await chmod(directory, mode)
}

async function isOurs(directory: string, marks: readonly string[]): Promise<boolean> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (errnoOf(error) !== 'EACCES') throw error
    throw unsafe(directory, 'has a mode by which nobody sees what is in it')
  })
  const found = names.filter((name) => name !== 'lost+found') // a disk of its own has that
  return found.length === 0 || marks.some((mark) => found.includes(mark))
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0')

async function giveToGroup(directory: string, uid: number, gid: number): Promise<void> {
  try {
    await chown(directory, uid, gid)
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
    throw new SallyportError(
      'ERR_RUNTIME_UNSAFE',
      `folder ${directory} cannot be given to group ${gid}, the host_group, by uid ${uid}, whose process is not in it; start the daemon as root, or with that group beside its own (SupplementaryGroups= of systemd, setpriv --groups)`,
      { path: directory, gid },
      { cause: error },
    )
  }
}

// A folder above that another user may write lets them rename ours away and put theirs in its place.
async function checkParents(directory: string): Promise<void> {
  const uid = process.geteuid?.() ?? -1
  for (let parent = dirname(directory); ; parent = dirname(parent)) {
    const found = await lstat(parent)
    if (found.isSymbolicLink())
      throw behindLink(parent, join(await realpath(dirname(directory)), basename(directory)))
    const { uid: owner, gid, mode } = found
    if (owner !== 0 && owner !== uid) throw unsafe(parent, `belongs to uid ${owner}`)
    const byGroup = (mode & 0o020) !== 0 && gid !== 0 && !(await isPrivateGroup(gid, owner))
    if ((byGroup || (mode & 0o002) !== 0) && (mode & 0o1000) === 0)
      throw unsafe(parent, `has mode ${octal(mode & 0o7777)}, so others can replace what is in it`)
    if (parent === dirname(parent)) return
  }
}

// What is there, and is no folder, is judged by whoever looks at it next.
function make(directory: string, mode: number): void {
  try {
    makeFolder(directory, mode)
  } catch (error) {
    if (errnoOf(error) === null || isShortage(error)) throw error
    if (existsSync(directory)) return
    throw unmakeable(directory, error)
  }
}

function unsafe(path: string, why: string): SallyportError {
  return new SallyportError(
    'ERR_RUNTIME_UNSAFE',
    `folder ${path} ${why}; remove it or choose another with ${options}`,
    { path },
  )
}

// What a link leads through would have to be judged as well, and init stages through none.
function behindLink(link: string, real: string): SallyportError {
  return new SallyportError(
    'ERR_RUNTIME_UNSAFE',
    `folder ${link} is a symbolic link, and none is followed but root’s where nobody else can write; choose the folder by where that leads, ${real}, with --runtime or $SALLYPORT_RUNTIME_DIR`,
    { path: link },
  )
}

function unmakeable(path: string, cause: unknown): SallyportError {
  return new SallyportError(
    'ERR_RUNTIME_UNSAFE',
    `folder ${path} cannot be made: ${String(cause)}; choose one with ${options} below a folder that this user may make folders in`,
    { path },
    { cause },
  )
}
