// Places that a chain must have: what was written there is known from elsewhere, so that a shorter chain is found out.
import { basename } from 'node:path'
import { headPath, readHead } from './head-file.ts'
import type { JournalRecord, Position } from './record.ts'
import { readSnapshots, snapshotPath, type Unusable } from './snapshot.ts'

/** What is wrong with a journal that lacks one. */
export interface Lacking {
  readonly path: string
  readonly kind: 'anchor' | 'head' | 'snapshot'
  readonly detail: string
}

interface Landmark extends Lacking {
  readonly position: Position
  isThere: boolean
}

const gone = 'is not in the journal: it was cut off or rewritten'
const nameOf = ({ seq, hash }: Position): string => `record ${seq} with hash ${hash}`

/**
 * An anchor that was kept elsewhere; the last record of the daemon that runs; what the head file has; and the places of the snapshots that carry the
 * journal's own MAC, unless the journal itself says that a start has refused one.
 */
export class Landmarks {
  /** Snapshots that are no landmark, since no start can use them */
  readonly unusable: readonly Unusable[]
  readonly #all: Landmark[] = []
  readonly #refused = new Set<string>()
  readonly #unusableHead: Lacking | null = null

  constructor(
    directory: string,
    key: Uint8Array | null,
    { anchor, head }: { readonly anchor: Position | null; readonly head: Position | null },
  ) {
    const add = (path: string, kind: Lacking['kind'], position: Position, what: string): void => {
      this.#all.push({
        path,
        kind,
        position,
        detail: `${what}${nameOf(position)} ${gone}`,
        isThere: position.seq === 0,
      })
    }
    if (anchor !== null) add(directory, 'anchor', anchor, '')
    if (head !== null) add(directory, 'head', head, 'the daemon’s last ')
    const written = key === null ? null : readHead(directory, key)
    if (written !== null && 'seq' in written) add(headPath(directory), 'head', written, 'the last known ')
    else if (written !== null)
      this.#unusableHead = { path: headPath(directory), kind: 'head', detail: written.reason }
    const snapshots = key === null ? [] : readSnapshots(directory, key)
    this.unusable = snapshots.filter((one) => 'reason' in one)
    for (const snapshot of snapshots)
      if ('position' in snapshot) {
        const path = snapshotPath(directory, snapshot.position.seq)
        add(path, 'snapshot', snapshot.position, 'it was taken behind ')
      }
  }

  /** Places that the chain is known to have had; those of snapshots may be of an end that was lost. */
  get known(): readonly Position[] {
    return this.#all.filter(({ kind }) => kind !== 'snapshot').map(({ position }) => position)
  }

  /** The chain has a place: where a batch ends, or where the chain begins. */
  pass({ seq, hash }: Position): void {
    for (const one of this.#all)
      if (one.position.seq === seq && one.position.hash === hash) one.isThere = true
  }

  /** A record of the chain. */
  visit(record: JournalRecord): void {
    const { seq, hash } = record
    if (hash !== null) this.pass({ seq, hash })
    const path: unknown = record.type === 'snapshot.refused' ? Reflect.get(Object(record.body), 'path') : null
    if (typeof path === 'string') this.#refused.add(basename(path))
  }

  /** The first that a chain which begins at `begins` lacks, or null. */
  lacking(begins: Position): Lacking | null {
    for (const { path, kind, position, detail, isThere } of this.#all) {
      if (isThere || (kind === 'snapshot' && this.#refused.has(basename(path)))) continue
      if (position.seq >= begins.seq) return { path, kind, detail }
      // A snapshot of what was let go of since is no more than old.
      if (kind === 'anchor') {
        const detail = `record ${position.seq} was let go as journal.keep_days says, so it cannot be compared; the chain begins behind record ${begins.seq}`
        return { path, kind, detail }
      }
    }
    return this.#unusableHead
  }
}
