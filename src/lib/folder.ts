// Folders that are made with those above them.
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errnoOf } from './missing.ts'

/**
 * Makes a folder of that mode, and those above it that are missing; one that is there stays as it is. Throws what `mkdir` does.
 *
 * Not by Node's `recursive`: below a folder that is there and takes none (ENOENT, as /proc says) that goes round for ever.
 */
export const makeFolder = (path: string, mode: number): void => {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EEXIST' && isFolder(path)) return
    const above = dirname(path)
    if (errno !== 'ENOENT' || isFolder(above)) throw error
    makeFolder(above, mode)
    makeFolder(path, mode)
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
