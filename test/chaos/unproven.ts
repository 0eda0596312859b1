// A run that proves nothing, and how any run is had again.

/** What makes a run the same. */
interface Same {
  readonly seed: string
  readonly seconds: string | number
  readonly only: string
  readonly plant: boolean
}

/** The options with which a run is had again. */
export function againWith({ seed, seconds, only, plant }: Same): string {
  const more = [...(only === '' ? [] : [`--only '${only}'`]), ...(plant ? ['--plant'] : [])]
  return ['again with', `--seed ${seed} --seconds ${seconds}`, ...more].join(' ')
}

/** Says that the machine, and not the daemon, ended the run; the exit status. */
export function unproven(why: string, told: Same): number {
  process.stdout.write(`nothing is proven: ${why}; ${againWith(told)}\n`)
  return 2
}
