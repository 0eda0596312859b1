// Evidence that is too long for its record: a file under its digest, whole or not at all.
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, isMissing } from '../../lib/missing.ts'
import { draftOf } from '../../journal/sidecars.ts'

/** What finds no room is not to take up what there is: others' records have to go there. */
export async function keepIn(
  folder: string,
  sha256: string,
  bytes: Buffer,
  isSynced: boolean,
): Promise<void> {
  const draft = join(folder, draftOf(sha256))
  await using file = await openIn(folder, draft)
  try {
    await file.writeFile(bytes)
    if (isSynced) await file.sync()
    await rename(draft, join(folder, sha256))
    if (isSynced) await syncFolder(folder)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Opens a new file in a folder, which is made where it is not there. */
async function openIn(folder: string, path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    if (!isMissing(error)) throw error
    await mkdir(folder, { mode: 0o700 }).catch(unlessThere)
    return open(path, 'wx', 0o600)
  }
}

/** Two that come first make it at once. */
function unlessThere(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST') throw error
}

/** A name outlives a loss of power only once its folder was synced. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}
