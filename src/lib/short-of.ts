// What this process is short of right now, where something could not be looked at and nobody says why.
import { closeSync, openSync } from 'node:fs'
import { isShortage } from './missing.ts'

/** What the system says where it has no descriptor, or no memory, for one more file; null where it has. */
export function shortOf(): unknown {
  try {
    closeSync(openSync('/', 'r'))
    return null
  } catch (thrown) {
    return isShortage(thrown) ? thrown : null
  }
}
