// Whether a path leads to something.
import { stat } from 'node:fs/promises'
import { isMissing } from '../lib/missing.ts'

/** Links are followed. Fails where nobody can say, as where a folder above it may not be entered. */
export const isThere = async (path: string): Promise<boolean> => {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
