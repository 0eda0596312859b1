// What a caller hears when policy says no.
import { SallyportError } from '../../errors.ts'
import type { Decision, Gate, GovernedRequest } from '../../schema/gate.ts'
import type { ServerSettings } from '../../schema/settings.ts'

/** What a caller is told where rules deny something that it asks for, which needs no server then; null where they do not. */
export function denialOf(
  gate: Gate,
  server: ServerSettings,
  asks: readonly Omit<GovernedRequest, 'server'>[],
): SallyportError | null {
  for (const { kind, subject, arguments: value } of asks) {
    const decision = gate.decide({ server, kind, subject, arguments: value })
    if (decision.action === 'deny') return refusalOf(decision, server.name, subject)
  }
  return null
}

/** What a caller is told about a decision that is not `allow`. */
export function refusalOf(decision: Decision, server: string, subject: string): SallyportError {
  const what = `${server} ${subject}`
  const details = { server, tool: subject, rule: decision.rule, reason: decision.reason }
  if (decision.action === 'ask') {
    const message = `${what} needs approval, and nobody can be asked: ${decision.reason}`
    return new SallyportError(decision.code ?? 'ERR_APPROVAL_UNAVAILABLE', message, details)
  }
  return new SallyportError(
    decision.code ?? 'ERR_POLICY_DENIED',
    `${what} was not called: ${decision.reason}`,
    details,
  )
}
