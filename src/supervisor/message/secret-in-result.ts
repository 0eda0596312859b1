// A server said a secret: what the caller is told instead, and the copy that may be kept.
import { SallyportError } from '../../errors.ts'

export class SecretInResult extends SallyportError {
  /** What it said, with every secret replaced; for the journal */
  readonly redacted: string

  constructor(server: string, redacted: string) {
    super('ERR_SECRET_IN_RESULT', `the answer of ${server} held a secret, and was withheld`, { server })
    this.redacted = redacted
  }
}
