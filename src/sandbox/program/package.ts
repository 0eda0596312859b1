// The code of a server: digested as it is registered, held to that digest at each launch.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { errnoOf, isMissing, isShortage } from '../../lib/missing.ts'
import { isWithin } from '../../lib/path-overlap.ts'
import type { PackageSettings } from '../../schema/settings.ts'
import type { Trust } from './command.ts'
import { digestTree, readTree, recheckTree, UnpinnableError, type Tree } from './tree.ts'
import { isPrivateGroup } from '../../lib/private-group.ts'
import { atOnce, followTrusted } from '../../lib/trusted-path.ts'

/** A package as it was registered. */
export interface PackagePin {
  readonly server: string
  readonly settings: PackageSettings
  /** `source` first, then the `with` folders */
  readonly trees: readonly Tree[]
  /** `sha256:` and hex, over the trees' names and digests */
  readonly digest: string
}

/** Reads a tree, or gives the one that was just read: servers share their node_modules. */
export type ReadTree = (root: string) => Promise<Tree>

/**
 * Returns the package of a server, pinned.
 *
 * 1. `source` and every `with` folder exist, and nobody untrusted can change the way there
 * 2. every entry belongs to a trusted user and is writable by nobody else; none is a device, socket or pipe
 * 3. every symbolic link stays within the trees, or leads by an absolute path into /usr
 * 4. the digest over all of it is the one that the config states, where it states one
 *
 * Throws ERR_PACKAGE_UNSAFE or ERR_PACKAGE_CHANGED, which name the path and the mend.
 */
export const pinPackage = async (
  server: string,
  settings: PackageSettings,
  trust: Trust,
  read: ReadTree = readTree,
): Promise<PackagePin> => {
  const roots = await Promise.all(
    [settings.source, ...settings.with].map((path) => findRoot(server, path, trust)),
  )
  const trees: Tree[] = []
  for (const root of roots) trees.push(await read(root).catch((error: unknown) => unpinnable(server, error)))
  for (const tree of trees) await judgeEntries(server, tree, roots, trust)
  const names = ['source', ...settings.with.map((path) => basename(path))]
  const hash = createHash('sha256').update('sallyport package 1\n')
  for (const [index, tree] of trees.entries()) hash.update(`${names[index]}\0${await digestTree(tree)}\n`)
  const digest = `sha256:${hash.digest('hex')}`
  if (settings.digest !== null && settings.digest !== digest)
    throw new SallyportError(
      'ERR_PACKAGE_CHANGED',
      `package ${settings.source} of server ${server} has digest ${digest}, the config states ${settings.digest}; install the version that was meant, or state its digest`,
      { server, source: settings.source, digest, expected: settings.digest },
    )
  return { server, settings, trees, digest }
}

/**
 * Returns the pin, renewed where facts of files differ and their content does not.
 *
 * Looks at every entry, reads only what may have changed. Throws ERR_PACKAGE_CHANGED, which names the first file.
 */
export const verifyPackage = async (
  pin: PackagePin,
  trust: Trust,
  recheck: typeof recheckTree = recheckTree,
): Promise<PackagePin> => {
  const { server, settings } = pin
  const trees: Tree[] = []
  for (const [index, path] of [settings.source, ...settings.with].entries()) {
    const tree = pin.trees[index]
    const root = await findRoot(server, path, trust)
    if (tree === undefined || root !== tree.root) throw changed(pin, `${path} now leads to ${root}`)
    const checked = await recheck(tree).catch((error: unknown) => unpinnable(server, error))
    if ('changed' in checked) throw changed(pin, `${join(tree.root, checked.changed)} is not what it was`)
    trees.push(checked)
  }
  if (trees.every((tree, index) => tree === pin.trees[index])) return pin
  for (const tree of trees)
    await judgeEntries(
      server,
      tree,
      trees.map(({ root }) => root),
      trust,
    )
  return { ...pin, trees }
}

/** A script of the package is there, and a file; where a link leads is seen at each launch. Throws ERR_ARGUMENT_REFUSED. */
export const expectScript = ({ server, settings, trees }: PackagePin, script: string): void => {
  const { target, source, with: beside } = settings
  const [tree] = trees
  if (tree === undefined || !isWithin(script, target)) return
  const steps = relative(target, script).split('/')
  if (beside.some((path) => basename(path) === steps[0])) return
  for (let depth = 1; depth <= steps.length; depth++) {
    const found = tree.entries.get(steps.slice(0, depth).join('/'))
    if (found?.kind === 'link') return
    if (found !== undefined && (depth < steps.length || found.kind === 'file')) continue
    const what = found === undefined ? `does not exist in ${source}` : 'is not a regular file'
    throw new SallyportError(
      'ERR_ARGUMENT_REFUSED',
      `server ${server}: script ${JSON.stringify(script)} ${what}; correct the path, or install the package`,
      { server, script },
    )
  }
}

const findRoot = async (server: string, path: string, { uid }: Trust): Promise<string> => {
  try {
    const followed = await followTrusted(path, [uid], atOnce)
    if (followed.isTrusted) return followed.real
    const { place, what, mend } = followed.distrust
    throw unsafe(server, place, what, mend)
  } catch (error) {
    if (isMissing(error)) throw unsafe(server, path, 'does not exist', 'install it, or correct the path')
    return unreadable(server, path, error)
  }
}

const judgeEntries = async (
  server: string,
  { root, entries }: Tree,
  roots: readonly string[],
  { uid }: Trust,
): Promise<void> => {
  const harmless = new Map<string, boolean>()
  for (const [path, { kind, mode, uid: owner, gid, content }] of entries) {
    const full = join(root, path)
    if (owner !== 0 && owner !== uid)
      throw unsafe(server, full, `belongs to uid ${owner}`, 'chown it to root or to the daemon’s user')
    if (kind === 'link') judgeLink(server, full, content, roots)
    else if ((mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !(await isOwnersOnly(gid, owner, harmless))))
      throw unsafe(server, full, 'can be written by others', `chmod -R go-w ${root}`)
  }
}

// A tree has thousands of entries and few groups.
const isOwnersOnly = async (gid: number, uid: number, known: Map<string, boolean>): Promise<boolean> => {
  const key = `${gid} ${uid}`
  const isHarmless = known.get(key) ?? (gid === 0 || (await isPrivateGroup(gid, uid)))
  known.set(key, isHarmless)
  return isHarmless
}

// By its text and, where it leads to something, by where that is: a link may go through other links.
const judgeLink = (server: string, path: string, text: string, roots: readonly string[]): void => {
  const written = resolve(dirname(path), text)
  for (const target of [written, realOrNull(path) ?? written]) {
    const stays =
      roots.some((root) => isWithin(target, root)) || (text.startsWith('/') && isWithin(target, '/usr'))
    if (!stays)
      throw unsafe(
        server,
        path,
        `is a link to ${target}, outside of the package`,
        'add that folder to with, or copy it',
      )
  }
}

const realOrNull = (path: string): string | null => {
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

const unpinnable = (server: string, error: unknown): never => {
  if (error instanceof UnpinnableError) throw unsafe(server, error.path, error.message, error.mend)
  const path: unknown = Reflect.get(Object(error), 'path')
  return unreadable(server, typeof path === 'string' ? path : 'a file', error)
}

/** What the daemon's own user can't read is no package, whoever named it; what is for want of something else goes on as it is. */
const unreadable = (server: string, path: string, error: unknown): never => {
  const errno = errnoOf(error)
  if (errno === null || isMissing(error) || isShortage(error) || error instanceof SallyportError) throw error
  throw unsafe(
    server,
    path,
    `cannot be read (${errno})`,
    'let the daemon’s user read it, or correct the path',
  )
}

const unsafe = (server: string, path: string, what: string, mend: string): SallyportError =>
  new SallyportError('ERR_PACKAGE_UNSAFE', `package of server ${server}: ${path} ${what}; ${mend}`, {
    server,
    path,
  })

const changed = ({ server, digest }: PackagePin, what: string): SallyportError =>
  new SallyportError(
    'ERR_PACKAGE_CHANGED',
    `package of server ${server}, registered with digest ${digest}, changed: ${what}; reload the daemon to register the code that is there now`,
    { server, digest },
  )
