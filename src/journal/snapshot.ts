// What a journal added up to at the end of a segment, so that a start reads what came after and not everything.
//
// A snapshot is a convenience and never an authority: it is MAC'd with the journal's key, bound to one place in the chain,
// and thrown away wherever either does not hold. Each step of writing one leaves the ones before as they are:
//
//   sync the segment -> draft -> sync -> rename -> sync the folder -> remove what is older than the last two
//
// Where an end was lost, snapshots of it may lie beside those of the chain that goes on: they count for nothing in it.
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { errnoOf, isShortage } from '../lib/missing.ts'
import { seal, unseal } from './sealed.ts'
import { type SegmentEnd, segmentPath, textOf, throughDescriptor } from './segments.ts'

export interface Snapshot extends SegmentEnd {
  /** What all records up to the position came to; JSON */
  readonly state: unknown
}

/** A snapshot, or their whole folder, that is not to be used, and why. */
export interface Unusable {
  readonly path: string
  readonly reason: string
}

const kept = 2
const name = /^(\d{16})\.json$/

const folderOf = (directory: string): string => join(directory, 'snapshots')
const draftIn = (folder: string): string => join(folder, '.draft')

/** Path of the snapshot that was taken behind the record of that number. */
export const snapshotPath = (directory: string, seq: number): string =>
  join(folderOf(directory), `${String(seq).padStart(16, '0')}.json`)

/**
 * The journal's snapshots, newest first; what is no snapshot of this key is named with the reason, as is a folder that can't be
 * read. Throws where the machine is short of something.
 */
export function readSnapshots(directory: string, key: Uint8Array): readonly (Snapshot | Unusable)[] {
  const folder = folderOf(directory)
  try {
    return names(directory).flatMap((file) => readSnapshot(join(folder, file), key))
  } catch (error) {
    if (isShortage(error)) throw error
    return [{ path: folder, reason: reasonOf(error) }]
  }
}

/** None where it was let go of since the folder was read, as a daemon does beside a verification. */
function readSnapshot(path: string, key: Uint8Array): readonly (Snapshot | Unusable)[] {
  try {
    return [unseal('snapshot', textOf(path), key) as Snapshot]
  } catch (error) {
    if (isShortage(error)) throw error
    return errnoOf(error) === 'ENOENT' ? [] : [{ path, reason: reasonOf(error) }]
  }
}

function reasonOf(error: unknown): string {
  const errno = errnoOf(error)
  if (errno !== null) return `it cannot be read (${errno})`
  return error instanceof Error ? error.message : 'it cannot be read'
}

/** Writes a snapshot whole or not at all. */
export async function writeSnapshot(
  directory: string,
  key: Uint8Array,
  end: SegmentEnd,
  state: string,
): Promise<void> {
  // By its descriptor: where the folder is moved meanwhile, nothing is made in what stands in its place.
  await using opened = await open(directory, 'r')
  const here = throughDescriptor(opened)
  const folder = folderOf(here)
  // What a snapshot adds up must outlast the snapshot; and where the segment is not, no folder is made, for it would be another's.
  await synced(segmentPath(here, end.segment))
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    if (errnoOf(error) !== 'EEXIST') throw error
  })
  const { segment, position, offset, torn } = end
  const members = `"segment":${segment},"position":${JSON.stringify(position)},"offset":${offset},"torn":${JSON.stringify(torn)},"state":${state}`
  const path = snapshotPath(here, position.seq)
  const draft = draftIn(folder)
  await rm(draft, { force: true })
  try {
    await drafted(draft, seal('snapshot', members, key))
    await rename(draft, path)
  } catch (error) {
    // Where there was no room for it, it is not to take up what there is.
    await rm(draft, { force: true }).catch(() => undefined)
    throw error
  }
  await synced(folder)
}

/** Of this chain the last two, of which `end` is the newest. */
export const lastOf = (end: SegmentEnd, before: readonly SegmentEnd[]): readonly SegmentEnd[] =>
  [end, ...before.filter(({ position }) => position.seq !== end.position.seq)].slice(0, kept)

/** Once there are two of this chain, lets go of all others but those that were refused: these stay until that is on record. */
export async function keepSnapshots(
  directory: string,
  own: readonly SegmentEnd[],
  refused: readonly Unusable[],
): Promise<void> {
  if (own.length < kept) return
  const spared = new Set([...namesOf(own), ...refused.map(({ path }) => basename(path))])
  for (const file of names(directory))
    if (!spared.has(file)) await rm(join(folderOf(directory), file), { force: true })
}

/** Removes what was refused, but where one of this chain has the name now. Nothing but plain files goes, by way of no link. */
export async function removeRefused(
  directory: string,
  own: readonly SegmentEnd[],
  refused: readonly Unusable[],
): Promise<void> {
  const folder = folderOf(directory)
  if (!(await isThere(folder, 'isDirectory'))) return
  const spared = namesOf(own)
  for (const file of refused.map(({ path }) => basename(path)))
    if (name.test(file) && !spared.includes(file) && (await isThere(join(folder, file), 'isFile')))
      await rm(join(folder, file), { force: true })
}

const namesOf = (ends: readonly SegmentEnd[]): readonly string[] =>
  ends.map(({ position }) => basename(snapshotPath('', position.seq)))

const isThere = (path: string, as: 'isDirectory' | 'isFile'): Promise<boolean> =>
  lstat(path).then(
    (found) => found[as](),
    (error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return false
      throw error
    },
  )

/**
 * Removes what a daemon that was killed as it wrote one left of it; called while nobody writes any. Nothing but a plain file of
 * that name goes, by way of no link; what can't be removed takes up room until the next snapshot, and no more.
 */
export function removeDraft(directory: string): void {
  const folder = folderOf(directory)
  try {
    if (lstatSync(folder).isDirectory() && lstatSync(draftIn(folder)).isFile()) rmSync(draftIn(folder))
  } catch (error) {
    if (errnoOf(error) === null) throw error
  }
}

/**
 * Last segment that may go: the one that the snapshot before the last of this chain adds up, so that one of the two may be
 * unusable; else 0.
 */
export function coveredSegment(directory: string, key: Uint8Array, own: readonly SegmentEnd[]): number {
  const isOwn = ({ position }: Snapshot): boolean => own.some((one) => one.position.hash === position.hash)
  const usable = readSnapshots(directory, key).filter((one) => 'segment' in one && isOwn(one))
  return usable.length < kept ? 0 : (own.at(-1)?.segment ?? 0)
}

function names(directory: string): readonly string[] {
  try {
    return readdirSync(folderOf(directory))
      .filter((file) => name.test(file))
      .sort()
      .toReversed()
  } catch (error) {
    // A file in the folder's place is no folder that is missing.
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}

async function drafted(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  await file.sync()
}

async function synced(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}
