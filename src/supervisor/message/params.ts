// The keys of a request's `params` by which it is judged, and acted on.
import { SallyportError } from '../../errors.ts'
import type { Member } from '../../lib/json-scan.ts'
import { type Spellings, spellings } from '../../lib/key-folding.ts'
import { confusableWithin } from './envelope.ts'

/** Keys of `params` that Sallyport or a server acts on; no other spelling of them passes. */
const keys = spellings([
  'name',
  'arguments',
  'uri',
  'ref',
  'argument',
  'context',
  'taskId',
  'task',
  'requestId',
  'notifications',
  'inputResponses',
  'requestState',
  '_meta',
])

/** Of what is relayed Sallyport reads no more. */
const relayedKeys = spellings(['_meta'])

/** What a host is told whose params have a key that readers take differently, or null. */
export const ambiguousParams = (method: string, found: readonly Member[]): SallyportError | null =>
  ambiguous(method, found, keys)

/** The same of a request that is not judged. */
export const ambiguousRelayed = (method: string, found: readonly Member[]): SallyportError | null =>
  ambiguous(method, found, relayedKeys)

function ambiguous(method: string, found: readonly Member[], known: Spellings): SallyportError | null {
  const key = confusableWithin(found, known)
  if (key === null) return null
  const what = `params of ${method} has the key ${JSON.stringify(key)}`
  return new SallyportError('ERR_MESSAGE_AMBIGUOUS', `${what}, which readers take differently`)
}
