// Evidence that is too long for its record: a file under its digest, whole or not at all.
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, isMissing } from '../../lib/missing.ts'
import { throughDescriptor } from '../../journal/segments.ts'
import { draftOf } from '../../journal/sidecars.ts'

interface Keeping {
  readonly isSynced: boolean
  /** Its age counts from then at the earliest, whatever the wall clock says, ms */
  readonly notBefore: number
}

/** What finds no room is not to take up what there is: others' records have to go there. Throws what the file system throws, also where a link stands in the folder's place. */
export async function keepIn(
  path: string,
  sha256: string,
  bytes: Buffer,
  { isSynced, notBefore }: Keeping,
): Promise<void> {
  await using folder = await openFolder(path)
  const inside = throughDescriptor(folder)
  const draft = join(inside, draftOf(sha256))
  await using file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    if (Date.now() < notBefore) await file.utimes(notBefore / 1000, notBefore / 1000)
    if (isSynced) await file.sync()
    await rename(draft, join(inside, sha256))
    if (isSynced) await folder.sync() // a name outlives a loss of power only once its folder was synced
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Opens the folder itself, which is made where it is not there. */
async function openFolder(path: string): Promise<FileHandle> {
  try {
    return await open(path, folderFlags)
  } catch (error) {
    if (!isMissing(error)) throw error
    await mkdir(path, { mode: 0o700 }).catch(unlessThere)
    return open(path, folderFlags)
  }
}

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Two that come first make it at once. */
function unlessThere(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST') throw error
}
