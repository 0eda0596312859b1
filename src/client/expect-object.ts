// What a daemon says is an object wherever it says anything; what speaks otherwise is none of ours.
import { SallyportError } from '../errors.ts'

/** Throws ERR_DAEMON_PROTOCOL where that is no object; `what` is the method that said it. */
export function expectObject(what: string, value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  const got = value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 80)
  throw new SallyportError(
    'ERR_DAEMON_PROTOCOL',
    `${what}: the daemon said ${got}, expected an object; use the sallyport of the daemon's version`,
  )
}
