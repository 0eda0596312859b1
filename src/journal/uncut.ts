// An end of the journal that does not count and can't be cut off, noted wherever there is room: a daemon that is killed
// meanwhile would leave to the next one records whose callers were told that there are none.
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { errnoOf, isMissing } from '../lib/missing.ts'
import type { Position } from './record.ts'
import { seal, unseal } from './sealed.ts'
import { endsSo, listSegments, segmentPath, textOf } from './segments.ts'

/** What does not count: all of a segment behind `length`. */
export interface Uncut {
  readonly segment: number
  readonly length: number
  /** Its last record: where the segment ends with another one, it was cut off, and more was written since */
  readonly position: Position
}

/** Sealed with the journal's key, and of use for one end of one segment alone. */
export class UncutNote {
  readonly #paths: readonly string[]
  readonly #key: Uint8Array
  #isThere = false

  /** `paths` are on disks that may fail independently; each gets all of it. */
  constructor(paths: readonly string[], key: Uint8Array) {
    this.#paths = paths
    this.#key = key
  }

  /** Puts this in the place of what was there, wherever it goes. */
  write({ segment, length, position: { seq, hash } }: Uncut): void {
    const members = `"segment":${segment},"length":${length},"position":{"seq":${seq},"hash":"${hash}"}`
    for (const path of this.#paths)
      try {
        writeFileSync(`${path}.draft`, seal('uncut', members, this.#key), { mode: 0o600 })
        renameSync(`${path}.draft`, path)
        this.#isThere = true
      } catch {
        // the disk that fails already is told of; the other one may have it
      }
  }

  /** It was cut off. */
  clear(): void {
    if (!this.#isThere) return
    for (const path of this.#paths) rmSync(path, { force: true })
    this.#isThere = false
  }

  /** Cuts off what the last life could not; throws what the file system throws, and nothing may be read then. */
  settle(directory: string): void {
    for (const path of this.#paths) {
      const uncut = this.#read(path)
      if (uncut !== null) cutOff(directory, uncut)
    }
    this.clear()
  }

  #read(path: string): Uncut | null {
    let text: string
    try {
      text = textOf(path)
    } catch (error) {
      if (isMissing(error) || errnoOf(error) === null) return null // or no file, which is nobody's note
      throw error
    }
    this.#isThere = true
    try {
      return unseal('uncut', text, this.#key) as Uncut
    } catch {
      return null // who can write there can take it away, too
    }
  }
}

function cutOff(directory: string, { segment, length, position }: Uncut): void {
  if (listSegments(directory).at(-1) !== segment) return
  const path = segmentPath(directory, segment)
  const offset = statSync(path).size
  if (!endsSo(directory, { segment, position, offset, torn: null })) return
  const fd = openSync(path, 'r+')
  try {
    ftruncateSync(fd, length)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
