// Whether a call is made again: its lineage and all that its server reads are the same, byte for byte, but for what counts requests.
import { members } from '../lib/json-scan.ts'
import { latin1, unicode } from '../lib/one-way.ts'
import { onlyCounts } from '../lib/only-counts.ts'
import { digestOf, sentDigest } from './canonical.ts'

const meta = '_meta'
const looksInside: ReadonlySet<string> = new Set([meta])
/** What of a call is the same where it is made again. */
export interface Repeatable {
  /** Its params as they will be sent */
  readonly bytes: string
  /** The same as they are recorded, without a person's answers */
  readonly evidence: string
  readonly lineage: string | null
  /** The literal of its id, or null where that only counts */
  readonly id: string | null
}

/** SHA-256 over what is the same; of its params with an empty `_meta.progressToken` in the place of one that only counts. */
export function repeatDigest({ bytes, evidence, lineage, id }: Repeatable): string {
  const digest = digestOfParams(bytes, evidence)
  const ofIt = lineage === null ? digest : digestOf(`${digest} of ${lineage}`)
  return id === null ? ofIt : digestOf(`${ofIt} as ${id}`)
}

function digestOfParams(params: string, evidence: string): string {
  if (params !== evidence) return sentDigest(params, evidence) // whose answers are its own
  const text = latin1(params)
  const token = members(text, 0, text.length, { inside: looksInside })
    .find(({ key }) => key === meta)
    ?.inner.find(({ key }) => key === 'progressToken')
  if (token === undefined || !onlyCounts(text.slice(token.start, token.end))) return digestOf(params)
  return digestOf(unicode(text.slice(0, token.start) + text.slice(token.end)))
}
