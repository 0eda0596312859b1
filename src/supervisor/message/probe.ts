// What the answer to `server/discover` says about a server's era, and what is remembered of it.
import { type Member, members } from '../../lib/json-scan.ts'
import type { Response } from './envelope.ts'
import type { MessageId } from './message-id.ts'

export type Era = 'legacy' | 'modern'

/** A question for the era. */
export interface Probe {
  readonly id: MessageId
  /** It says who speaks, as each request of the later era does: by its answer to another nobody is known */
  readonly isWhole: boolean
}

/** The memory of one server's era, as one caller's sessions found it. */
export interface Verdicts {
  get(): Era | null
  set(era: Era): void
}

/**
 * What is known of one server; a new version of it starts with nothing. Each caller's is their own: what one asks, and how the
 * server takes that, is nothing to another.
 */
export class Eras {
  readonly #known = new Map<string, Era>()

  of(principal: string): Verdicts {
    return {
      get: () => this.#known.get(principal) ?? null,
      set: (era) => void this.#known.set(principal, era),
    }
  }

  forget(isOf: (principal: string) => boolean): void {
    for (const principal of this.#known.keys()) if (isOf(principal)) this.#known.delete(principal)
  }
}

/** Errors that only a server of the later era gives: header mismatch, missing capability, unsupported version */
const modernErrors = new Set(['-32020', '-32021', '-32022'])

/** A result, or an error that only the later era has. Any other error means legacy, as the specification says. */
export function isModernAnswer({ text, result, error }: Response): boolean {
  return result !== null || modernErrors.has(codeOf({ text, error }) ?? '')
}

/** Whether it says that there is no such method: any other error may be of this question, or of this moment, alone. */
export const isLegacyAnswer = (response: Response): boolean => codeOf(response) === '-32601'

function codeOf({ text, error }: Pick<Response, 'text' | 'error'>): string | null {
  if (error === null || text.charCodeAt(error.start) !== 123) return null
  const code: Member | undefined = members(text, error.start, error.end).find(({ key }) => key === 'code')
  return code === undefined ? null : text.slice(code.start, code.end)
}
