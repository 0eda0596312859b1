// How a refused proposal is told: the code for where the thing to be called stands, and one line with the reason.
import { SallyportError } from '../errors.ts'
import type { Proposal } from '../schema/governor.ts'

/** What stands in the way -> its code. */
export const refusals = {
  unaccepted: 'ERR_DECLARATION_MISSING',
  unknown: 'ERR_TOOL_NOT_FOUND',
  changed: 'ERR_DECLARATION_MISMATCH',
  replaced: 'ERR_IDENTITY_CHANGED',
  ungoverned: 'ERR_SURFACE_UNGOVERNED',
  violated: 'ERR_SCOPE_VIOLATION',
  unavailable: 'ERR_SERVER_UNAVAILABLE',
} as const

/** The error that a caller is told; nothing was sent. */
export const denied = (
  proposal: Pick<Proposal, 'server' | 'subject'>,
  code: ConstructorParameters<typeof SallyportError>[0],
  reason: string,
  rule: string | null = null,
): SallyportError =>
  new SallyportError(code, `${proposal.server.name} ${proposal.subject} was not called: ${reason}`, {
    server: proposal.server.name,
    tool: proposal.subject,
    ...(rule === null ? {} : { rule }),
  })
