// Whether a call is made again: its lineage and all that its server reads are the same, byte for byte, but for the token that counts requests.
import { members } from '../lib/json-scan.ts'
import { latin1, unicode } from '../lib/one-way.ts'
import { digestOf, sentDigest } from './canonical.ts'

const meta = '_meta'
const looksInside: ReadonlySet<string> = new Set([meta])
/** A number, or a name too short to say anything */
const countingToken = /^(?:\d{1,16}|"[\w-]{1,64}")$/

/** What of a call is the same where it is made again. */
export interface Repeatable {
  /** Its params as they will be sent */
  readonly bytes: string
  /** The same as they are recorded, without a person's answers */
  readonly evidence: string
  readonly lineage: string | null
}

/** SHA-256 over what is the same; of its params with an empty `_meta.progressToken` in the place of one that only counts. */
export function repeatDigest({ bytes, evidence, lineage }: Repeatable): string {
  const digest = digestOfParams(bytes, evidence)
  return lineage === null ? digest : digestOf(`${digest} of ${lineage}`)
}

function digestOfParams(params: string, evidence: string): string {
  if (params !== evidence) return sentDigest(params, evidence) // whose answers are its own
  const text = latin1(params)
  const token = members(text, 0, text.length, { inside: looksInside })
    .find(({ key }) => key === meta)
    ?.inner.find(({ key }) => key === 'progressToken')
  if (token === undefined || !countingToken.test(text.slice(token.start, token.end))) return digestOf(params)
  return digestOf(unicode(text.slice(0, token.start) + text.slice(token.end)))
}
