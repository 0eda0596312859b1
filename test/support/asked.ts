// What the program of a run is asked, judged before anything is started.

/** The exit status of a program one of whose arguments is none */
const statusUsage = 7
/** The longest that a run may be asked to take, s: a week, where a timer for more than 24 days ends at once */
export const mostSeconds = 7 * 24 * 60 * 60

/** What an argument means. Where it means nothing, one line says what is taken, and the program ends with 7. */
export function asked<T>(program: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    return misused(program, (error as Error).message)
  }
}

/** Ends the program with 7 and one line that says why. */
export function misused(program: string, why: string): never {
  process.stderr.write(`${program}: ${why.replaceAll('\n', ' ')}\n`)
  process.exit(statusUsage)
}

/** The seconds that `--seconds` means. Throws what is taken where it means none, or more than there is a timer for. */
export function secondsOf(said: string): number {
  const seconds = Number(said)
  if (!(seconds >= 1 && seconds <= mostSeconds))
    throw new Error(`--seconds ${said}: use a number from 1 to ${mostSeconds}, which is a week`)
  return seconds
}
