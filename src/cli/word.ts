// Words of a command line that name something: an empty one is a slip in a script, and names nothing.
import { SallyportError } from '../errors.ts'

/** Takes the id of a question or an approval. */
export function approvalId(value: string): string {
  if (value !== '' && value.length <= 128) return value
  const got = JSON.stringify(value.length > 128 ? `${value.slice(0, 100)}…` : value)
  throw new SallyportError('ERR_USAGE', `<id>: got ${got}, expected an id of sallyport approvals; say which`)
}

/** Takes any word but an empty one for an option, such as `--call "$ID"` where that is not set. */
export const wordFor =
  (option: string) =>
  (value: string): string => {
    if (value !== '') return value
    throw new SallyportError('ERR_USAGE', `${option}: got "", expected a name; mend it or leave it out`)
  }
