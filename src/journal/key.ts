// The journal's MAC key: made once, kept outside the journal's folder, readable by nobody else.
import { randomBytes, randomUUID } from 'node:crypto'
import { link, lstat, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { SallyportError } from '../errors.ts'
import { errnoOf, isMissing } from '../lib/missing.ts'
import { isRefused, unreadable } from './failures.ts'
import { listSegments } from './segments.ts'

const keyBytes = 32

/**
 * Reads the key at `path`, or makes it (mode 0600) where there is none and `journal`, a folder, holds nothing yet: another key
 * would hide that the journal's own is lost. What a start that was killed left of making it is removed.
 *
 * @throws ERR_JOURNAL_KEY when the file is readable by others, not ours, not 32 bytes, not to be read, or lost; ERR_JOURNAL where
 * none can be kept, or nobody can look whether there is a journal
 */
export async function loadKey(path: string, journal: string): Promise<Uint8Array> {
  const key = await takeKey(path, journal)
  await removeDrafts(path)
  return key
}

async function takeKey(path: string, journal: string): Promise<Uint8Array> {
  const isBegun = hasBegun(journal) // looked at first: whoever begins one beside us has made the key before
  const found = await readKey(path).catch((error: unknown) => {
    if (isMissing(error)) return null
    throw isRefused(error) ? untaken(path, `it cannot be read (${errnoOf(error)})`) : error
  })
  if (isBegun && found !== null) return found
  if (isBegun)
    throw new SallyportError(
      'ERR_JOURNAL_KEY',
      `the journal's key ${path} is missing, and ${journal} was written with it; restore the file, or move the journal away to begin a new chain`,
      { path },
    )
  try {
    const key = found ?? (await makeKey(path))
    // A name outlives a loss of power only once its folder was synced: before anything is written with the key.
    await using folder = await open(dirname(path), 'r')
    await folder.sync()
    return key
  } catch (error) {
    const why = errnoOf(error)
    if (why === null || error instanceof SallyportError) throw error
    throw new SallyportError(
      'ERR_JOURNAL',
      `the journal's key cannot be kept in ${path} (${why}), so nothing is called; mend the disk, then start again`,
      { path },
      { cause: error },
    )
  }
}

function hasBegun(journal: string): boolean {
  try {
    return listSegments(journal).length > 0
  } catch (error) {
    throw isRefused(error) ? unreadable(journal, error) : error
  }
}

async function makeKey(path: string): Promise<Uint8Array> {
  const draft = `${path}.${randomUUID()}`
  try {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(randomBytes(keyBytes))
    await file.sync()
    await file.chmod(0o600)
    await link(draft, path).catch(unlessMade)
  } finally {
    await rm(draft, { force: true })
  }
  return readKey(path)
}

// Of several that begin at once one makes the key, and then removes what the others had begun, too.
function unlessMade(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST' && !isMissing(error)) throw error
}

const draftName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

// With a key in its place none of them is wanted by anybody. One that can't be removed is in nobody's way.
async function removeDrafts(path: string): Promise<void> {
  const [folder, start] = [dirname(path), `${basename(path)}.`]
  const names = await readdir(folder).catch(() => [])
  for (const name of names.filter((it) => it.startsWith(start) && draftName.test(it.slice(start.length)))) {
    const draft = join(folder, name)
    const found = await lstat(draft).catch(() => null)
    if (found?.isFile() === true && found.uid === process.getuid?.())
      await rm(draft, { force: true }).catch(() => undefined)
  }
}

async function readKey(path: string): Promise<Uint8Array> {
  const { mode, uid, size } = await stat(path)
  const own = process.getuid?.() ?? 0
  const wrong =
    uid !== own
      ? `it belongs to uid ${uid}, expected ${own}`
      : (mode & 0o077) !== 0
        ? `its mode is ${(mode & 0o777).toString(8)}, expected 600`
        : size !== keyBytes
          ? `it has ${size} bytes, expected ${keyBytes}`
          : null
  if (wrong !== null) throw untaken(path, wrong)
  return readFile(path)
}

const untaken = (path: string, wrong: string): SallyportError =>
  new SallyportError(
    'ERR_JOURNAL_KEY',
    `the journal's key ${path} cannot be trusted: ${wrong}; restore the file, or move it and the journal away to begin a new chain`,
    { path },
  )
