// What a caller hears when policy says no.
import { SallyportError } from '../../errors.ts'
import type { Decision } from '../../schema/gate.ts'

/** What a caller is told about a decision that is not `allow`. */
export function refusalOf(decision: Decision, server: string, subject: string): SallyportError {
  const what = `${server} ${subject}`
  const details = { server, subject, rule: decision.rule, reason: decision.reason }
  if (decision.action === 'ask') {
    const message = `${what} needs approval, and nobody can be asked: ${decision.reason}`
    return new SallyportError(decision.code ?? 'ERR_APPROVAL_UNAVAILABLE', message, details)
  }
  return new SallyportError(
    decision.code ?? 'ERR_POLICY_DENIED',
    `${what} is denied: ${decision.reason}`,
    details,
  )
}
