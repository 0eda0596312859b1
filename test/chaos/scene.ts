// What a fault is: whom it befalls, how often, and what it says of itself.
import { setTimeout as delay } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import type { Containers } from './containers.ts'
import type { Ledger } from './ledger.ts'
import type { Stage } from './stage.ts'

export interface Scene {
  readonly stage: Stage
  readonly ledger: Ledger
  /** Names of the servers that hosts call */
  readonly servers: readonly string[]
  readonly chance: Chance
  readonly containers: Containers | null
}

export interface Fault {
  /** How often, beside the others */
  readonly weight: number
  /** Whether the daemon ends by it, or may */
  readonly isFatal?: boolean
  /** Returns what it did, for people */
  readonly befall: (scene: Scene) => Promise<string | Missed>
}

/** That a fault has not befallen anybody: a run says so, since it proves nothing about that one. */
export class Missed {
  readonly why: string

  constructor(why: string) {
    this.why = why
  }
}

/** Starts the daemon that a fault has ended; says what came of it. */
export async function again(stage: Stage, chance: Chance): Promise<string> {
  const ms = chance.between(0, 500)
  await delay(ms)
  return `${(await stage.start()) ? 'up' : 'not up'} again after ${ms} ms`
}
