// The keys of a request's `params` by which it is judged, and acted on.
import { SallyportError } from '../../errors.ts'
import { JsonScanError, type Member, members } from '../../lib/json-scan.ts'
import { tooMany } from '../../lib/json-scan-error.ts'
import { type Spellings, spellings } from '../../lib/key-folding.ts'
import { confusableWithin, type Request } from './envelope.ts'

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

/** Keys of `_meta` that Sallyport reads or rewrites, and those that stand there in any request of the later era */
const metaKeys = spellings([
  'progressToken',
  'sallyport/lineage',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/logLevel',
])

/** Keys of `_meta` that are looked at, each of which is read closely: a few dozen would be many */
const mostOfMeta = 1024

/** What a host is told whose `_meta` has a key that readers take differently, or more keys than are looked at, or null. */
export function ambiguousMeta({ method, text, params }: Request): SallyportError | null {
  const meta = params?.inner.find(({ key }) => key === '_meta')
  if (meta === undefined || text.charCodeAt(meta.start) !== 123) return null
  try {
    const found = members(text, meta.start, meta.end, { bounded: 'listed' })
    if (found.length > mostOfMeta) throw tooMany(mostOfMeta, 'members', meta.start)
    return ambiguous(`_meta of ${method}`, found, metaKeys)
  } catch (thrown) {
    if (!(thrown instanceof JsonScanError)) throw thrown
    return new SallyportError('ERR_MESSAGE_TOO_LARGE', `_meta of ${method}: ${thrown.message}`)
  }
}

/** What a host is told whose params have a key that readers take differently, or null. */
export const ambiguousParams = (method: string, found: readonly Member[]): SallyportError | null =>
  ambiguous(`params of ${method}`, found, keys)

/** The same of a request that is not judged. */
export const ambiguousRelayed = (request: Request): SallyportError | null =>
  ambiguous(`params of ${request.method}`, request.params?.inner ?? [], relayedKeys) ?? ambiguousMeta(request)

function ambiguous(where: string, found: readonly Member[], known: Spellings): SallyportError | null {
  const key = confusableWithin(found, known)
  if (key === null) return null
  const what = `${where} has the key ${JSON.stringify(key)}`
  return new SallyportError('ERR_MESSAGE_AMBIGUOUS', `${what}, which readers take differently`)
}
