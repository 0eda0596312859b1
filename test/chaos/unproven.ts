// A run that proves nothing, and how any run is had again.

/** The exit status of a run after which nothing is known of the daemon */
export const statusUnproven = 2

/** What makes a run the same. */
export interface Same {
  readonly seed: string
  readonly seconds: string | number
  readonly only: string | null
  readonly plant: boolean
}

/** The options with which a run is had again. */
export function againWith({ seed, seconds, only, plant }: Same): string {
  const more = [...(only === null ? [] : [`--only '${only}'`]), ...(plant ? ['--plant'] : [])]
  return ['again with', `--seed ${seed} --seconds ${seconds}`, ...more].join(' ')
}

/** The line that says why nothing is proven. */
export const unprovenAs = (why: string, told: Same): string => `nothing is proven: ${why}; ${againWith(told)}`

/** Says that the machine, and not the daemon, ended the run; the exit status. */
export function unproven(why: string, told: Same): number {
  process.stdout.write(`${unprovenAs(why, told)}\n`)
  return statusUnproven
}
