// Why a source gave no secret: what the operator must know, and never what it gave.
import { SallyportError } from '../../errors.ts'

/** An error that names the credential and the fault. The text must hold nothing that the source said. */
export const sourceFailed = (credential: string, fault: string): SallyportError =>
  new SallyportError('ERR_CREDENTIAL_SOURCE', `credential ${credential} can't be read: ${fault}`, {
    credential,
  })
