// A secret in a variable of the daemon's own environment.
import { sourceFailed } from './failure.ts'

/** Returns the variable's value; an unset or empty one is an error. */
export const readVariable = (
  credential: string,
  variable: string,
  environment: Readonly<Record<string, string | undefined>>,
): Buffer => {
  const value = Object.hasOwn(environment, variable) ? environment[variable] : undefined
  if (value === undefined)
    throw sourceFailed(credential, `variable ${variable} is unset; export it to the daemon`)
  return Buffer.from(value)
}
