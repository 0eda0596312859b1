// Whether a call is made again: all that its server reads is the same, byte for byte, but for the token that counts requests.
import { members } from '../lib/json-scan.ts'
import { digestOf } from './canonical.ts'

const meta = '_meta'
const looksInside: ReadonlySet<string> = new Set([meta])
/** A number, or a name too short to say anything */
const countingToken = /^(?:\d{1,16}|"[\w-]{1,64}")$/

/** SHA-256 of a request's params as they will be sent, with an empty `_meta.progressToken` in the place of one that only counts. */
export function repeatDigest(params: string): string {
  const token = members(params, 0, params.length, { inside: looksInside })
    .find(({ key }) => key === meta)
    ?.inner.find(({ key }) => key === 'progressToken')
  if (token === undefined || !countingToken.test(params.slice(token.start, token.end)))
    return digestOf(params)
  return digestOf(params.slice(0, token.start) + params.slice(token.end))
}
