// What a tool's result says of itself.
import type { Member } from '../../lib/json-scan.ts'
import { readShallow } from './shallow.ts'

interface Said {
  readonly isError?: unknown
  readonly resultType?: unknown
}

const telling = new Set(['isError', 'resultType'])
const nothing: Said = {}

/** The members of a result, a JSON text, that tell what it is. A key may be written with escapes. */
export function saidBy(raw: string): Said {
  if (!raw.includes('"isError"') && !raw.includes('"resultType"') && !raw.includes('\\u')) return nothing
  const result = readShallow(raw, telling)
  return typeof result === 'object' && result !== null ? result : nothing
}

type ResultKind = 'result' | 'input-required' | 'tool-error'

/** As `kindOf`, of a result whose members are listed: most say nothing of themselves. */
export const kindOfListed = (raw: string, { inner }: Member): ResultKind =>
  inner.some(({ key }) => telling.has(key)) ? kindOf(raw) : 'result'

/** How a call ended that was answered with a result; one with `isError` ran, and failed. */
export const kindOf = (raw: string): ResultKind => kindOfSaid(saidBy(raw))

/** As `kindOf`, of what a result says of itself. */
export function kindOfSaid({ isError, resultType }: Said): ResultKind {
  if (isError === true) return 'tool-error'
  return resultType === 'input_required' ? 'input-required' : 'result'
}
