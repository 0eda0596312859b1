// Parts of an answer that are looked for that say something of the whole: the version of a handshake, its size.
import { SallyportError } from '../../errors.ts'
import { decodeString, type Member } from '../../lib/json-scan.ts'
import { onePiece } from '../../lib/one-piece.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { HostRequest } from './conversation.ts'
import type { Response } from '../message/envelope.ts'

/** Longest version that is one, bytes with its quotes */
const longestVersion = 64

/** The protocol version that a handshake's result names, or null; nothing of the answer is kept with it. */
export function versionOf(text: string, result: Member): string | null {
  const version = result.inner.find(({ key }) => key === 'protocolVersion')
  if (version === undefined || text.charCodeAt(version.start) !== 34) return null
  if (version.end - version.start > longestVersion) return null
  return onePiece(decodeString(text.slice(version.start, version.end)))
}

/** Why an answer to a governed request is larger than a caller may get; null where it is not. */
export function oversized(
  { name, output }: ServerSettings,
  { route }: HostRequest,
  { result, error }: Response,
): SallyportError | null {
  const span = result ?? error
  if ((route !== 'call' && route !== 'govern') || span === null) return null
  const bytes = span.end - span.start
  if (bytes <= output.resultBytes) return null
  const what = `the answer of ${name} has ${bytes} bytes, and output.result_bytes is ${output.resultBytes}`
  return new SallyportError('ERR_RESULT_TOO_LARGE', `${what}; ask for less or raise it`, { bytes })
}

/** What a host is told in the stead of a result that asks for what it may not. */
export const mayNotAsk = (server: string, method: string, asked: string, reason: string): SallyportError =>
  new SallyportError(
    'ERR_METHOD_REFUSED',
    `${server} asked for ${asked} during ${method}, which is not allowed: ${reason}`,
    { asked, reason },
  )

export const tooManyAsked = (): SallyportError =>
  new SallyportError('ERR_BUSY', 'the host has too many requests of this server, or one with the same id')

export const nothingEnds = (): SallyportError =>
  new SallyportError('ERR_INVALID_REQUEST', 'its requestId is of nothing that it may end')

/** What a server is told that asks for what it may not. */
export const refused = (server: string, method: string, reason: string): SallyportError =>
  new SallyportError(
    'ERR_METHOD_REFUSED',
    `${JSON.stringify(method)} of ${server} does not reach the host: ${reason}`,
    { method, reason },
  )
