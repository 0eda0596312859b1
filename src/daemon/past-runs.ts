// Journals of runs that are over, which go as old segments of a daemon's do: where `journal.keep_days` says so, and on record.
import { existsSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { headPath, readHead } from '../journal/head-file.ts'
import { isMissing } from '../lib/missing.ts'

const dayMs = 86_400_000

/** Where each run has a folder for its journal, by its daemon's id. */
export const runsFolder = (stateDir: string): string => join(stateDir, 'runs')

/** One run that goes: its last record, as far as that is known, and when it was last written to. */
interface PastRun {
  readonly run: string
  readonly head: string | null
  readonly until: string
}

interface Forgetting {
  readonly stateDir: string
  readonly key: Uint8Array
  readonly keepDays: number
  /** The time by which they are old; null while it is not to be gone by */
  readonly agesBy: () => Promise<number | null>
  /** Makes the record of it durable; nothing is removed before */
  readonly record: (body: {
    readonly keep_days: number
    readonly runs: readonly PastRun[]
  }) => Promise<unknown>
}

/**
 * Removes what runs recorded that are over and were last written to more than `keepDays` ago; 0 keeps everything. Call it
 * once dead daemons' marks are gone: a run whose mark is there is not over, however long it was silent.
 */
export async function forgetPastRuns({ stateDir, key, keepDays, agesBy, record }: Forgetting): Promise<void> {
  if (keepDays === 0) return
  const now = await agesBy()
  if (now === null) return
  const folder = runsFolder(stateDir)
  const old: PastRun[] = []
  for (const run of (await namesIn(folder)).filter((name) => /^d-[\w-]+$/.test(name))) {
    if (existsSync(join(stateDir, 'daemons', `${run}.json`))) continue
    const lastMs = await lastChange(join(folder, run))
    if (lastMs === null || lastMs > now - keepDays * dayMs) continue
    const head = readHead(join(folder, run), key)
    const place = head !== null && 'seq' in head ? `${head.seq}:${head.hash}` : null
    old.push({ run, head: place, until: new Date(lastMs).toISOString() })
  }
  if (old.length === 0) return
  await record({ keep_days: keepDays, runs: old })
  for (const { run } of old) {
    await rm(join(folder, run), { recursive: true, force: true })
    await rm(headPath(join(folder, run)), { force: true })
  }
}

/** Of the folder and all that is in it, its evidence too; null where another run has just removed it. */
async function lastChange(folder: string): Promise<number | null> {
  try {
    const names = await readdir(folder, { recursive: true })
    const paths = [folder, ...names.map((name) => join(folder, name))]
    const times = await Promise.all(paths.map((path) => stat(path)))
    return Math.max(...times.map(({ mtimeMs }) => mtimeMs))
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
