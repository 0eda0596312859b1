// What `profile explain` answers with, and how it refuses a question that is none.
import { SallyportError } from '../errors.ts'

/** What can be asked about. */
export const subjects = ['path', 'host', 'credential', 'env', 'syscall', 'limit'] as const
export type Subject = (typeof subjects)[number]

/** What one thing gets, and the key that decides it. */
export interface Verdict {
  readonly gets: string
  readonly because: string
  /** Key of `decidedAt`, or null for what no profile can change */
  readonly key: string | null
}

/** The error for a name that cannot be one of its kind. */
export function unusable(
  subject: Subject,
  name: string,
  expected: string,
  mend: string | null = null,
): SallyportError {
  const got = JSON.stringify(name)
  const message = `${subject}: got ${got}, expected ${expected}${mend === null ? '' : `; ${mend}`}`
  return new SallyportError('ERR_USAGE', message, { got, expected, mend })
}
