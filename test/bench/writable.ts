// Whether files can be written, asked before minutes are spent for them.
import { closeSync, openSync } from 'node:fs'

/** Which of these can't be written and why, in words; null where all can. What is not named is not asked for. */
export function unwritable(files: readonly (string | undefined)[]): string | null {
  for (const file of files) {
    if (file === undefined) continue
    try {
      closeSync(openSync(file, 'a'))
    } catch (error) {
      return `${file} cannot be written: ${(error as Error).message}`
    }
  }
  return null
}
