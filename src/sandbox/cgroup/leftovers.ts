// Removes the control groups that a dead daemon left, and only those whose daemon is provably dead.
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { enough, SallyportError } from '../../errors.ts'
import { makeFolder } from '../../lib/folder.ts'
import type { DaemonId } from '../../lib/ids.ts'
import { errnoOf, isMissing, isShortage, textIfThere } from '../../lib/missing.ts'
import { bootId, type DaemonMark, isDead, markOf, readMark } from '../daemon-mark.ts'
import { removeDirectory } from './directory.ts'

/** What a daemon writes down at its start, so that the next one can tell whether it lives. */
interface DaemonRecord extends DaemonMark {
  readonly directories: readonly string[]
}

/** How often a record is written anew whose draft another start took for one that nobody finishes */
const mostTries = 100

/** Writes down which groups this daemon owns, in `stateDirectory/daemons`. Call it before the first of them is made. */
export function recordGroups(stateDirectory: string, daemon: DaemonId, directories: readonly string[]): void {
  const folder = recordsIn(stateDirectory)
  const record: DaemonRecord = { ...markOf(daemon), directories }
  const file = join(folder, `${daemon}.json`)
  // Whole or not at all: half a record would be taken for nobody's
  for (let tries = 1; ; tries++)
    try {
      writeFileSync(draftOf(file), JSON.stringify(record), { mode: 0o600 })
      return renameSync(draftOf(file), file)
    } catch (error) {
      if (isMissing(error) && tries < mostTries) continue
      rmSync(draftOf(file), { force: true })
      throw unkept(folder, error)
    }
}

const draftOf = (file: string): string => `${file}.new`

/** The folder of the records, made where it is missing. */
function recordsIn(stateDirectory: string): string {
  const folder = join(stateDirectory, 'daemons')
  try {
    makeFolder(folder, 0o700)
    return folder
  } catch (error) {
    throw unkept(folder, error)
  }
}

function unkept(folder: string, cause: unknown): SallyportError {
  const isShort = isShortage(cause)
  return new SallyportError(
    isShort ? 'ERR_SHORTAGE' : 'ERR_RUNTIME_UNSAFE',
    `the records of daemons cannot be kept in ${folder} (${errnoOf(cause) ?? String(cause)}): expected a folder${isShort ? ` with room; ${enough}` : '; move what is there, or name another --state'}`,
    { path: folder },
    { cause },
  )
}

/** Forgets this daemon's record, once its groups are gone. */
export function forgetGroups(stateDirectory: string, daemon: DaemonId): void {
  rmSync(join(stateDirectory, 'daemons', `${daemon}.json`), { force: true })
}

/**
 * Kills and removes what dead daemons left, drafts of records too, and returns the groups that it removed. Call it before
 * `recordGroups`. Runs start and end side by side: what another of them removes meanwhile is gone.
 *
 * A record of another pid namespace, or one that can't be read, is left alone.
 */
export async function removeLeftovers(stateDirectory: string): Promise<readonly string[]> {
  const folder = recordsIn(stateDirectory)
  const removed: string[] = []
  const names = readdirSync(folder)
  for (const draft of names.filter((name) => name.endsWith(draftOf('.json'))))
    rmSync(join(folder, draft), { force: true })
  for (const name of names.filter((entry) => entry.endsWith('.json'))) {
    const record = parseRecord(textIfThere(join(folder, name))) // its daemon may just have ended
    if (record === null || `${record.daemon}.json` !== name || !isDead(record)) continue
    // Groups live in memory: those of another boot are gone, and their paths may be somebody's of this one
    const directories =
      record.boot === bootId() ? record.directories.filter((path) => isOurs(path, record)) : []
    removed.push(...directories.filter((path) => existsSync(path)))
    for (const directory of directories) await removeDirectory(directory)
    rmSync(join(folder, name), { force: true })
  }
  return removed
}

/** A record can name groups of its own daemon only, whatever was written into it. */
function isOurs(path: string, { daemon }: DaemonRecord): boolean {
  return (
    path.startsWith('/') &&
    dirname(path) === join(dirname(path)) &&
    basename(path).startsWith(`sallyport-${daemon}`)
  )
}

function parseRecord(text: string): DaemonRecord | null {
  const mark = readMark(text)
  const directories = mark?.['directories']
  if (mark === null || !Array.isArray(directories)) return null
  return directories.every((path) => typeof path === 'string') ? { ...mark, directories } : null
}
