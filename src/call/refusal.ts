// How a refused proposal is told: the code for where the thing to be called stands, and one line with the reason.
import { SallyportError } from '../errors.ts'
import { clipMiddle } from '../lib/clip.ts'
import type { Proposal } from '../schema/governor.ts'
import type { PermitCheck } from './permit.ts'

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

/** The error that a caller is told; nothing was sent. A reason that names a key of the arguments is as long as the host made that, and is cut. */
export const denied = (
  proposal: Pick<Proposal, 'server' | 'subject'>,
  code: ConstructorParameters<typeof SallyportError>[0],
  reason: string,
  rule: string | null = null,
): SallyportError =>
  new SallyportError(
    code,
    `${proposal.server.name} ${proposal.subject} was not called: ${clipMiddle(reason)}`,
    {
      server: proposal.server.name,
      tool: proposal.subject,
      ...(rule === null ? {} : { rule }),
    },
  )

/** The error of a permit that failed a check; `outside` is what the sandbox does not contain, where that is why. */
export function refusedAtBoundary(
  { server, subject }: Pick<Proposal, 'server' | 'subject'>,
  identity: string,
  check: PermitCheck,
  outside: string | null,
): SallyportError {
  const why = outside === null ? check : `${check}: ${outside}`
  return new SallyportError(
    'ERR_PERMIT_REFUSED',
    `the permit for ${identity} was refused at the boundary: ${why}; nothing was sent`,
    { check, server: server.name, tool: subject },
  )
}
