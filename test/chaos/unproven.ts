// A run that proves nothing.

/** Says that the machine, and not the daemon, ended the run; the exit status. */
export function unproven(why: string, { seed, seconds }: { seed: string; seconds: string | number }): number {
  process.stdout.write(`nothing is proven: ${why}; again with --seed ${seed} --seconds ${seconds}\n`)
  return 2
}
