// Copies of what a server may write to: a draft that nobody has read never writes to the folders themselves.
import { chown, cp, lstat, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isMissing } from '../../lib/missing.ts'
import { isNormal, overlapOf } from '../../lib/path-overlap.ts'
import { type DenialFacts, findDenials } from '../../sandbox/mounts/denials.ts'
import type { MountSettings } from '../../schema/settings.ts'
import { temporary } from '../lab/ground.ts'
import type { Janitor } from '../lab/janitor.ts'

/** Copies for one run, gone with it. */
export interface Copies extends AsyncDisposable {
  /** Each copy in the place of what it is a copy of */
  readonly mounts: readonly MountSettings[]
}

/** Most that is copied of one path, bytes */
const copiedBytes = 268_435_456

/**
 * Holds paths to what a launch demands of a writable mount, since of a copy nobody could tell what it is a copy of. Throws
 * ERR_MOUNT_REFUSED for what a mandatory rule denies or lies around, for what is not there, and for what is too large.
 */
export const judgeWritable = async (paths: readonly string[], facts: DenialFacts): Promise<void> => {
  for (const path of paths) {
    const real = isNormal(path) ? await realpath(path).catch(unlessMissing) : null
    if (real === null) throw refused(path, 'is no path that is there', 'create it, or correct it')
    const denial = findDenials(facts, [path, real]).find((each) =>
      [path, real].some((one) => [each.path, each.real].some((other) => overlapOf(one, other) !== 'apart')),
    )
    if (denial !== undefined)
      throw refused(
        path,
        `meets ${denial.path}, ${denial.what}, which no configuration grants`,
        'name another',
      )
    if ((await sizeOf(real)) > copiedBytes)
      throw refused(path, `holds more than ${copiedBytes} bytes to be copied`, 'name a smaller folder')
  }
}

/** Copies the paths, for the user as whom the sandbox will run; null where that is whoever copies. The janitor knows. */
export const copyAll = async (
  paths: readonly string[],
  owner: number | null,
  janitor: Janitor,
): Promise<Copies> => {
  const root = await temporary('sp-copies-')
  await janitor.takes(`tree /${root.slice(1)}`)
  const takeAway = (): Promise<void> => rm(root, { recursive: true, force: true })
  const mounts: MountSettings[] = []
  try {
    for (const [index, target] of paths.entries()) {
      const source = join(root, String(index))
      await cp(target, source, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
      if (owner !== null) await chownAll(source, owner)
      mounts.push({ source, target, access: 'write', reason: 'a copy of what it may write to' })
    }
  } catch (error) {
    await takeAway()
    throw error
  }
  return { mounts, [Symbol.asyncDispose]: takeAway }
}

const chownAll = async (path: string, uid: number): Promise<void> => {
  await chown(path, uid, uid)
  if (!(await lstat(path)).isDirectory()) return
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true }))
    if (!entry.isSymbolicLink()) await chown(join(entry.parentPath, entry.name), uid, uid)
}

const sizeOf = async (path: string): Promise<number> => {
  const found = await lstat(path)
  if (!found.isDirectory()) return found.size
  let bytes = 0
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    bytes += (await lstat(join(entry.parentPath, entry.name))).size
    if (bytes > copiedBytes) break
  }
  return bytes
}

const unlessMissing = (error: unknown): null => {
  if (isMissing(error)) return null
  throw error
}

const refused = (path: string, what: string, mend: string): SallyportError =>
  new SallyportError('ERR_MOUNT_REFUSED', `--write ${path} ${what}; ${mend}`, { source: path })
