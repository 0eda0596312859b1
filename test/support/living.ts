// What a daemon says of itself, by what was loaded into it before its own code.
import { readFileSync } from 'node:fs'

export interface Living {
  /** What lives in it once all garbage is collected, bytes */
  readonly bytes: number
  /** What Node keeps for it, in words */
  readonly handles: readonly string[]
}

/** Throws where it has said nothing yet. */
export const livingAt = (path: string): Living => JSON.parse(readFileSync(path, 'utf8')) as Living
