// The answers that are a no.
import type { ApprovalAnswer } from './ports.ts'
import { makeVisible } from './question.ts'

type No = Extract<ApprovalAnswer, { granted: false }>

/** An operator's no, with the reason as the caller is to read it. */
export function noOf(reason: string, by: string): No {
  const why = makeVisible(reason)
  return refusal(by, why === '' ? 'an operator said no' : `an operator said no: ${why}`)
}

/** Nobody's no, or one on the word of whoever is named. */
export const refusal = (by: string | null, reason: string) => ({
  granted: false as const,
  by,
  reason,
  isTimeout: false,
})
