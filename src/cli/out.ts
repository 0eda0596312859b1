// What `--out` names: it has what it had, or is not there, until all that is said stands on the disk, however the command ends.
import type { Stats } from 'node:fs'
import {
  access,
  constants,
  type FileHandle,
  link,
  lstat,
  open,
  readlink,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { onNamed, outFile } from '../config/named-file.ts'
import { newDraftName } from '../lib/ids.ts'
import { errnoOf, isMissing } from '../lib/missing.ts'

/** A file that is written beside the name that it is to have; disposing it removes what was not kept. */
interface Draft extends AsyncDisposable {
  write(text: string): Promise<void>
  /** Gives it the name, which nothing must have yet */
  keep(): Promise<void>
}

/**
 * Puts a whole file in the place of the one that a path leads to, with its mode and owner, or a new one of `mode`. What is no
 * file, as a pipe or a terminal, is written to, and so is a file where no other can be put in its place.
 */
export const replaceOut = (path: string, text: string, mode: number, mend?: string): Promise<void> =>
  onNamed(outFile(path, mend), async () => {
    if ((await unlessMissing(lstat(path))) === null) return writeBeside(path, text, mode)
    // As a write to it would be: whoever may not write to a file, or follow a link to it, does not replace it either.
    await using former = await open(path, constants.O_WRONLY | constants.O_CREAT, mode)
    const found = await former.stat()
    const place = found.isFile() ? await placeOf(path, found) : null
    try {
      if (place !== null) return await writeBeside(place, text, found.mode, found)
    } catch (error) {
      if (!forbids.has(errnoOf(error))) throw error
    }
    if (found.isFile()) await former.truncate()
    await former.writeFile(text)
  })

/** Throws before any work what `replaceOut` would throw after it, as far as the path tells by itself. */
export const foreseeOut = (path: string): Promise<void> =>
  onNamed(outFile(path), async () => {
    const found = await unlessMissing(stat(path))
    if (found?.isDirectory()) throw Object.assign(new Error(`${path}: EISDIR`), { code: 'EISDIR' })
    await access(found === null ? `${dirname(path)}/.` : path, constants.W_OK)
  })

/** Opens the draft of a file that must be new; `mendTaken` is what to do where it is not. */
export async function newOut(path: string, mode: number, mendTaken: string): Promise<Draft> {
  const named = { ...outFile(path), mendTaken }
  const draft = await onNamed(named, async () => {
    if ((await unlessMissing(lstat(path))) !== null) throw isThere(path)
    return openDraft(path, mode)
  })
  return {
    write: (text) => onNamed(named, () => draft.file.writeFile(text)),
    keep: () =>
      onNamed(named, async () => {
        await draft.file.sync()
        await nameNew(draft.path, path)
      }),
    [Symbol.asyncDispose]: () => draft[Symbol.asyncDispose](),
  }
}

/** What a folder, a mount at the file or the file's owner answers where a file is to take another's place. */
const forbids: ReadonlySet<string | null> = new Set(['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EXDEV'])

const isThere = (path: string): Error => Object.assign(new Error(`${path}: EEXIST`), { code: 'EEXIST' })

async function openDraft(path: string, mode: number) {
  const beside = join(dirname(path), newDraftName())
  const file = await open(beside, 'wx', mode & 0o777)
  return {
    path: beside,
    file,
    async [Symbol.asyncDispose]() {
      await file.close()
      await rm(beside, { force: true })
    },
  }
}

async function writeBeside(place: string, text: string, mode: number, former?: Stats): Promise<void> {
  await using draft = await openDraft(place, mode)
  if (former !== undefined) await likeFormer(draft.file, former)
  await draft.file.writeFile(text)
  await draft.file.sync()
  await rename(draft.path, place)
}

async function likeFormer(file: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const own = await file.stat()
  if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid)
  await file.chmod(mode & 0o7777)
}

/** A link fails where the name is taken, and a rename does not: that is for file systems without links alone. */
async function nameNew(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST' || (await unlessMissing(lstat(path))) !== null) throw error
    await rename(draft, path)
  }
}

/** Where links lead to in the end; null where that has no name to take, as what a descriptor has open (/dev/stdout). */
async function placeOf(path: string, { dev, ino }: Stats): Promise<string | null> {
  let place = path
  for (let links = 0; links < mostLinks; links += 1) {
    const folder = await realpath(dirname(place))
    if (folder.startsWith('/proc/')) return null
    place = join(folder, basename(place))
    const found = await lstat(place)
    if (!found.isSymbolicLink()) return found.dev === dev && found.ino === ino ? place : null
    place = resolve(folder, await readlink(place))
  }
  return null
}

/** As many as the kernel follows. */
const mostLinks = 40

async function unlessMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}
