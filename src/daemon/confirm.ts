// A second look at what was admitted, for a call that had to wait for a process of its own.
import type { Ledger } from '../call/ledger.ts'
import type { Permits } from '../call/permit.ts'
import { SallyportError } from '../errors.ts'
import type { Admission } from '../schema/governor.ts'

/** Uses the permit up; throws ERR_PERMIT_REFUSED where it was revoked, or the world is not the one any more in which the call was admitted. */
export function confirm(
  { ledger, permits }: { readonly ledger: Ledger; readonly permits: Permits },
  versionOf: (server: string) => string,
  { server, kind, subject, identity, permit, policyVersion, trustEpoch, instance, lineage }: Admission,
): void {
  const failed = permits.redeem(permit)
  const standing = ledger.standing(server, instance, kind, subject)
  const isSame = standing.state === 'accepted' && standing.identity === identity
  const isTrusted = ledger.trust(server, subject).epoch === trustEpoch && versionOf(server) === policyVersion
  const isHeld = ledger.hold(server, subject, lineage) !== null
  const check = failed ?? (!isSame ? 'identity' : !isTrusted ? 'trust' : isHeld ? 'checkpoint' : null)
  if (check === null) return
  throw new SallyportError(
    'ERR_PERMIT_REFUSED',
    `what was admitted of ${identity} may not be sent any more: ${check}`,
    { check, server, tool: subject },
  )
}
