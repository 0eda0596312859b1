// How often a test does what may be done more often in a long run, by a variable of the environment.

/** The variable's number, or what is usual; throws where it is none, since a test that does nothing passes. */
export function often(variable: string, usual: number): number {
  const said = process.env[variable]
  if (said === undefined) return usual
  if (!/^[1-9]\d*$/.test(said))
    throw new Error(
      `${variable}: got ${JSON.stringify(said)}, expected a whole number above 0, such as ${usual}`,
    )
  return Number(said)
}
