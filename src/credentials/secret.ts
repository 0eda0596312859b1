// Reads one credential now, and says what can't be a secret.
import { SallyportError } from '../errors.ts'
import { whenSpent } from '../lib/deadline.ts'
import type { CredentialSource, InjectionKind } from '../schema/credentials.ts'
import { readVariable } from './sources/env.ts'
import { sourceFailed } from './sources/failure.ts'
import { readSecretFile } from './sources/file.ts'
import { runForSecret } from './sources/command.ts'

/** A source may take this long, ms */
export const sourceMs = 10_000
/** Bytes of a secret at most, and at least where it is swapped at the door */
export const longestSecret = 8192
export const shortestSwapped = 16

/** What a source is read with. */
export interface SourceFacts {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly uid: number
  readonly initPath: string
}

/**
 * Returns the value, as bytes that whoever uses them zeroes. Rejects with ERR_CREDENTIAL_SOURCE when the source fails or
 * takes more than `sourceMs`, and with ERR_CREDENTIAL_REFUSED for a value that can't be sent or looked for; no error holds it.
 */
export const readSecret = async (
  credential: string,
  source: CredentialSource,
  kinds: readonly InjectionKind[],
  facts: SourceFacts,
  signal: AbortSignal,
): Promise<Buffer> => {
  const late = new AbortController()
  const inTime = whenSpent(sourceMs, () => late.abort())
  const given = await readSource(credential, source, facts, AbortSignal.any([signal, late.signal])).finally(
    inTime,
  )
  const value = given.at(-1) === 0x0a && source.kind !== 'env' ? given.subarray(0, -1) : given
  if (value.length === 0) throw sourceFailed(credential, `its ${source.kind} source is empty`)
  const fault = faultOf(value, kinds)
  if (fault === null) return value
  given.fill(0)
  throw new SallyportError('ERR_CREDENTIAL_REFUSED', `credential ${credential} is refused: ${fault}`, {
    credential,
  })
}

const readSource = async (
  credential: string,
  source: CredentialSource,
  { environment, ...host }: SourceFacts,
  signal: AbortSignal,
): Promise<Buffer> => {
  switch (source.kind) {
    case 'env':
      return readVariable(credential, source.variable, environment)
    case 'file':
      return readSecretFile(credential, source.path, host.uid, signal)
    case 'command':
      return runForSecret(credential, source.argv, host, signal)
  }
}

const faultOf = (value: Buffer, kinds: readonly InjectionKind[]): string | null => {
  if (value.includes(0) || value.includes(0x0a) || value.includes(0x0d))
    return 'it holds a line break or a NUL, with which it would end a header or a variable'
  if (!Buffer.from(value.toString('utf8')).equals(value)) return 'it is not UTF-8'
  if (value.length > longestSecret) return `it is longer than ${longestSecret} bytes`
  if (!kinds.includes('egress')) return null
  if (value.length < shortestSwapped)
    return `it is shorter than ${shortestSwapped} bytes, too short to be found again in what a host answers`
  if (/[\0-\x1f\x7f]/.test(value.toString('latin1')))
    return 'it holds a control character, which no header may'
  return null
}
