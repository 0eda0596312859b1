// A second look at what was admitted, for a call that had to wait for a process of its own, or for the rest of its request.
import type { Ledger } from '../../call/ledger.ts'
import type { Permits } from '../../call/permit.ts'
import { refusedAtBoundary } from '../../call/refusal.ts'
import type { SallyportError } from '../../errors.ts'
import type { Admission } from '../../schema/governor.ts'

/** Uses the permit up; ERR_PERMIT_REFUSED where it was revoked, or the world is not the one any more in which the call was admitted, else null. */
export function confirm(
  { ledger, permits }: { readonly ledger: Ledger; readonly permits: Permits },
  versionOf: (server: string) => string,
  admission: Admission,
): SallyportError | null {
  const { server, kind, subject, identity, permit, policyVersion, trustEpoch, instance, lineage } = admission
  const { process } = admission
  const redeemed = permits.redeem(permit)
  // What else is in its request may be asked of a person, whose time is not the permit's.
  const failed = process === null && redeemed === 'expiry' ? null : redeemed
  const listing = process === null ? [instance] : [instance, process]
  const standings = listing.map((one) => ledger.standing(server, one, kind, subject))
  const other = standings.find((one) => one.state !== 'accepted' || one.identity !== identity) ?? null
  const isTrusted = ledger.trust(server, subject).epoch === trustEpoch && versionOf(server) === policyVersion
  const hold = ledger.hold(server, subject, lineage)
  const check =
    failed ?? (other !== null ? 'identity' : !isTrusted ? 'trust' : hold !== null ? 'checkpoint' : null)
  if (check === null) return null
  const obstacle = { standing: other, outside: null, hold }
  return refusedAtBoundary({ server: { name: server }, subject }, identity, check, obstacle)
}
