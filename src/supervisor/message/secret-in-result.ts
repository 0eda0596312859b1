// A server said a secret: what the caller is told instead, and the copy that may be kept.
import { SallyportError } from '../../errors.ts'
import type { Looked } from './line-look.ts'

export class SecretInResult extends SallyportError {
  /** What it said, with every secret replaced; for the journal */
  readonly redacted: string
  /** Names of the credentials whose secrets they were */
  readonly credentials: readonly string[]

  constructor(server: string, { text, found }: Looked) {
    super('ERR_SECRET_IN_RESULT', `the answer of ${server} held a secret, and was withheld`, { server })
    this.redacted = text
    this.credentials = found
  }
}
