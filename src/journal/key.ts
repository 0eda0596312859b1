// The journal's MAC key: made once, kept outside the journal's folder, readable by nobody else.
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, link, open, readFile, rm, stat } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import { isMissing } from '../lib/missing.ts'

const keyBytes = 32

/**
 * Reads the key at `path`, or makes it (mode 0600) where there is none.
 *
 * @throws ERR_JOURNAL_KEY when the file is readable by others, not ours, or not 32 bytes
 */
export async function loadKey(path: string): Promise<Uint8Array> {
  try {
    return await readKey(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  const draft = `${path}.${randomUUID()}`
  try {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(randomBytes(keyBytes))
    await file.sync()
    await chmod(draft, 0o600)
    await link(draft, path).catch(unlessExists) // of several that begin at once, one makes the key
  } finally {
    await rm(draft, { force: true })
  }
  return await readKey(path)
}

function unlessExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
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
  if (wrong !== null)
    throw new SallyportError(
      'ERR_JOURNAL_KEY',
      `the journal's key ${path} cannot be trusted: ${wrong}; restore the file, or move it and the journal away to begin a new chain`,
      { path },
    )
  return readFile(path)
}
