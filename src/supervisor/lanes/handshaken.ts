// What came of the host's `initialize`, which decides the session's era: an answer in the server's words, not its asking.
import { SallyportError } from '../../errors.ts'
import type { Response } from '../message/envelope.ts'
import { modernVersion } from '../message/modern-dress.ts'
import { versionOf } from './answer-parts.ts'
import type { Wire } from './wire.ts'

/** Takes note of the answer, which is not passed on where it is too `large`; returns why it does not pass as a handshake, or null. */
export function handshaken(
  { server, talk }: Pick<Wire, 'server' | 'talk'>,
  { text, result }: Response,
  large: SallyportError | null,
): SallyportError | null {
  if (result === null || large !== null) {
    talk.notAgreed()
    return large
  }
  const version = versionOf(text, result)
  if (version === null || !hasNoHandshake(version)) {
    talk.agreed(version)
    return null
  }
  talk.notAgreed()
  const why = `it answered initialize with protocol version ${JSON.stringify(version)}, which has no handshake`
  return new SallyportError('ERR_SERVER_PROTOCOL', `mcp server ${server.name} broke the protocol: ${why}`)
}

/** Versions are days; what is none is left to the host. */
const hasNoHandshake = (version: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(version) && version >= modernVersion
