// What a server says of itself and what it lists, of which Sallyport reads all: no more than is read in a short turn.
import { SallyportError } from '../../errors.ts'
import { JsonScanError, members } from '../../lib/json-scan.ts'
import { isLong } from '../../lib/long-text.ts'
import { latin1 } from '../../lib/one-way.ts'

/** The value of a result. Throws ERR_SERVER_PROTOCOL for one that is long and no object, or has more in it than of a host's message is read. */
export function readAnswer(method: string, json: string): unknown {
  const problem = isLong(json) ? problemOf(json) : null
  if (problem !== null)
    throw new SallyportError('ERR_SERVER_PROTOCOL', `the answer to ${method} cannot be read: ${problem}`)
  return JSON.parse(json)
}

/** Whether `readAnswer` would read it. */
export const isReadable = (json: string): boolean => !isLong(json) || problemOf(json) === null

/** Looks no further than what is too much. */
function problemOf(json: string): string | null {
  const text = latin1(json)
  try {
    members(text, 0, text.length, { bounded: true })
    return null
  } catch (error) {
    if (error instanceof JsonScanError) return error.message
    throw error
  }
}
