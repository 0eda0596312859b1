// How the supervisor asks policy, and what a caller hears when the answer is no.
import { SallyportError } from '../errors.ts'
import type { Decision, GovernedRequest } from '../schema/gate.ts'

/** Reads the arguments only for a rule that looks at them. */
export class LazyRequest implements GovernedRequest {
  readonly server: GovernedRequest['server']
  readonly kind: GovernedRequest['kind']
  readonly subject: string
  readonly #read: () => unknown
  #value: { readonly read: unknown } | null = null

  constructor(
    server: GovernedRequest['server'],
    kind: GovernedRequest['kind'],
    subject: string,
    read: () => unknown,
  ) {
    this.server = server
    this.kind = kind
    this.subject = subject
    this.#read = read
  }

  get arguments(): unknown {
    this.#value ??= { read: this.#read() }
    return this.#value.read
  }
}

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
