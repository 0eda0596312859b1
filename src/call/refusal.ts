// How a refused proposal is told: the code for where the thing to be called stands, and one line with the reason.
import { SallyportError } from '../errors.ts'
import { clipMiddle } from '../lib/clip.ts'
import type { Proposal } from '../schema/governor.ts'
import type { LastWord, PermitCheck } from './permit.ts'
import type { Standing } from './ports.ts'

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
  proposal: { readonly server: Pick<Proposal['server'], 'name'>; readonly subject: string },
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

/** What stands in the way where a check fails: what the sandbox does not contain, or the hold that covers the call. */
interface Obstacle {
  /** How what would get the call stands by now; null where it stands as it did */
  readonly standing: Standing | null
  readonly outside: string | null
  readonly hold: string | null
  /** What an operator said that ended the permit, or null */
  readonly word: LastWord | null
}

/** The error of a permit that failed a check; nothing was sent. */
export function refusedAtBoundary(
  proposal: { readonly server: Pick<Proposal['server'], 'name'>; readonly subject: string },
  identity: string,
  check: PermitCheck,
  obstacle: Obstacle,
): SallyportError {
  const { server, subject } = proposal
  const { word } = obstacle
  if (check === 'authenticity' && word?.isNo === true)
    return denied(proposal, 'ERR_APPROVAL_DENIED', word.reason)
  return new SallyportError(
    'ERR_PERMIT_REFUSED',
    `the permit for ${identity} was refused at the boundary: ${check}: ${whyFailed(check, obstacle)}; nothing was sent`,
    { check, server: server.name, tool: subject },
  )
}

/** The same, of what is known before its permit. */
export const heldBeforeAsking = (
  { server, subject }: { readonly server: Pick<Proposal['server'], 'name'>; readonly subject: string },
  identity: string,
  hold: string,
): SallyportError =>
  new SallyportError(
    'ERR_PERMIT_REFUSED',
    `nobody was asked about ${identity}: checkpoint: ${standsOn(hold)}; nothing was sent`,
    { check: 'checkpoint', server: server.name, tool: subject },
  )

const standsOn = (hold: string): string =>
  `the hold ${hold} stands on it, which an operator ends with sallyport release ${hold}`

function whyFailed(check: PermitCheck, { standing, outside, hold, word }: Obstacle): string {
  const otherwise = standing === null || standing.state === 'accepted' ? null : standing.reason
  switch (check) {
    case 'authenticity': {
      const why = otherwise ?? word?.reason ?? null
      return `it was revoked, or has ended with what it stood on${why === null ? '' : `: ${why}`}`
    }
    case 'expiry':
      return 'it was not used within permit.ttl_ms'
    case 'identity':
      return (
        otherwise ?? 'the server that would get the call, or what it lists, is not the one that it was for'
      )
    case 'arguments':
      return 'what would be sent is not what it was for'
    case 'side-effects':
      return outside ?? 'the tool declares others than it was for'
    case 'lineage':
      return 'it was for another lineage'
    case 'trust':
      return 'the tool has lost the trust, or the rules have changed, under which it was issued'
    case 'checkpoint':
      return standsOn(hold ?? '')
  }
}

/** What is waited for before a thing is not accepted: it may not be known, or not any more since whoever lists it is gone, which says more. */
export const unseen = ({ state }: Standing, { obstacle, comparing }: Proposal): Promise<void> | null =>
  state === 'unaccepted' && obstacle === null ? comparing() : null
