// Words of a command line that name something: an empty one is a slip in a script, and names nothing.
import { SallyportError } from '../errors.ts'

/** Takes any word but an empty one for an option, such as `--call "$ID"` where that is not set. */
export const wordFor =
  (option: string) =>
  (value: string): string => {
    if (value !== '') return value
    throw new SallyportError('ERR_USAGE', `${option}: got "", expected a name; mend it or leave it out`)
  }
