// Whether a call is made again: all that its server reads is the same, byte for byte, but for the token that counts requests.
import { members } from '../lib/json-scan.ts'
import { latin1, unicode } from '../lib/one-way.ts'
import { digestOf, sentDigest } from './canonical.ts'

const meta = '_meta'
const looksInside: ReadonlySet<string> = new Set([meta])
/** A number, or a name too short to say anything */
const countingToken = /^(?:\d{1,16}|"[\w-]{1,64}")$/

/** SHA-256 of a request's params as they will be sent, with an empty `_meta.progressToken` in the place of one that only counts. */
export function repeatDigest(params: string, evidence = params): string {
  if (params !== evidence) return sentDigest(params, evidence) // whose answers are its own
  const text = latin1(params)
  const token = members(text, 0, text.length, { inside: looksInside })
    .find(({ key }) => key === meta)
    ?.inner.find(({ key }) => key === 'progressToken')
  if (token === undefined || !countingToken.test(text.slice(token.start, token.end))) return digestOf(params)
  return digestOf(unicode(text.slice(0, token.start) + text.slice(token.end)))
}
