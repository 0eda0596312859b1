// What the answer to `server/discover` says about a server's era, and what is remembered of it.
import { type Member, members } from '../../lib/json-scan.ts'
import type { Response } from './envelope.ts'

export type Era = 'legacy' | 'modern'

/** The memory of one server's era; a new version of the server starts with none. */
export interface Verdicts {
  get(): Era | null
  set(era: Era): void
}

/** Errors that only a server of the later era gives: header mismatch, missing capability, unsupported version */
const modernErrors = new Set(['-32020', '-32021', '-32022'])

/** A result, or an error that only the later era has. Any other error means legacy, as the specification says. */
export function isModernAnswer({ text, result, error }: Response): boolean {
  if (result !== null) return true
  if (error === null || text.charCodeAt(error.start) !== 123) return false
  const code: Member | undefined = members(text, error.start, error.end).find(({ key }) => key === 'code')
  return code !== undefined && modernErrors.has(text.slice(code.start, code.end))
}
