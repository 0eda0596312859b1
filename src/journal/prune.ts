// Letting go of old segments: said in the journal first, with the places where the chain was cut, then done, oldest first.
import { lstat, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../lib/missing.ts'
import { beginningOf } from './opening.ts'
import type { Position } from './record.ts'
import { listSegments, segmentPath } from './segments.ts'
import { draftOf, isSidecarName } from './sidecars.ts'

/** Where a removed segment ended: what the first one that is left hangs on. */
export interface Cut extends Position {
  readonly segment: number
}

/** Body of a `journal.pruned` record. */
export interface Pruned {
  readonly cuts: readonly Cut[]
  readonly keep_days: number
  /** Last change of the youngest segment that goes */
  readonly until: string
}

const dayMs = 86_400_000
// A sidecar is written before its record, and again with each that names it, and is no older than segments that had ended
// by then: this much before is nobody's any more.
const marginMs = 3_600_000

interface Keeping {
  readonly keepDays: number
  /** Last segment that two snapshots, or the only one, make dispensable */
  readonly covered: number
  readonly now: number
  /** Makes the record of it durable; nothing is removed before */
  readonly record: (pruned: Pruned) => Promise<unknown>
}

/** Removes whole segments whose last change is longer ago than `keepDays`, and evidence that only they named. */
export async function pruneJournal(directory: string, keeping: Keeping): Promise<Pruned | null> {
  const { keepDays, covered, now, record } = keeping
  if (keepDays === 0) return null
  const cuts: Cut[] = []
  let until = 0
  for (const segment of listSegments(directory)) {
    if (segment > covered) break
    const { mtimeMs } = await stat(segmentPath(directory, segment))
    const cut = cutBehind(directory, segment)
    if (mtimeMs > now - keepDays * dayMs || cut === null) break
    cuts.push(cut)
    until = Math.max(until, mtimeMs)
  }
  if (cuts.length === 0) return null
  const pruned = { cuts, keep_days: keepDays, until: new Date(until).toISOString() }
  await record(pruned)
  for (const { segment } of cuts) await rm(segmentPath(directory, segment))
  await pruneEvidence(join(directory, 'evidence'), until - marginMs)
  return pruned
}

/** True when that record accounts for a chain that begins behind `position`, in the segment after `segment`. */
export const accountsFor = (body: unknown, segment: number, position: Position): boolean =>
  (body as Partial<Pruned> | null)?.cuts?.some(
    (cut) => cut.segment === segment && cut.seq === position.seq && cut.hash === position.hash,
  ) ?? false

/** The end of a segment, as the header says it that comes next. */
function cutBehind(directory: string, segment: number): Cut | null {
  const continues = beginningOf(directory, segment + 1)
  return continues === null ? null : { segment, ...continues }
}

/** Lets go of evidence that was written before then. Nothing else goes, by way of no link; a file that can't be removed keeps none of the others, and is told of. */
export async function pruneEvidence(folder: string, before: number): Promise<void> {
  const isThere = await lstat(folder).then((found) => found.isDirectory(), ifMissing(false))
  const failures: unknown[] = []
  for (const name of isThere ? await readdir(folder).catch(ifMissing([])) : []) {
    if (!isSidecarName(name)) continue
    try {
      if (await isOld(join(folder, name), before)) await letGo(folder, name, before)
    } catch (error) {
      if (!isMissing(error)) failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

const isOld = async (path: string, before: number): Promise<boolean> => {
  const found = await lstat(path)
  return found.isFile() && found.mtimeMs < before
}

/** Put aside before it goes, and back where it is not the old one: a call may have written the same evidence anew meanwhile. */
async function letGo(folder: string, name: string, before: number): Promise<void> {
  const [path, aside] = [join(folder, name), join(folder, draftOf(name))]
  await rename(path, aside)
  if (await isOld(aside, before)) await rm(aside)
  else await rename(aside, path)
}

const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (isMissing(error)) return value
    throw error
  }
