// A second look at what was admitted, for a call that had to wait for a process of its own, or for the rest of its request.
import type { Ledger } from '../../call/ledger.ts'
import type { Permits } from '../../call/permit.ts'
import { denied, refusals, refusedAtBoundary } from '../../call/refusal.ts'
import type { SallyportError } from '../../errors.ts'
import type { Admission } from '../../schema/governor.ts'

/**
 * Uses the permit up; ERR_PERMIT_REFUSED where it was revoked, or the world is not the one any more in which the call was admitted,
 * and where the call's own process does not list what was accepted, the refusal for that; else null.
 */
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
  const own = process === null ? null : ledger.standing(server, process, kind, subject)
  // What it lists was compared at its start, as any process's: that, and not that the permit fell with it, is why.
  if (own !== null && own.state !== 'accepted')
    return denied({ server: { name: server }, subject }, refusals[own.state], own.reason)
  const standings = [ledger.standing(server, instance, kind, subject), ...(own === null ? [] : [own])]
  const other = standings.find((one) => one.state !== 'accepted' || one.identity !== identity) ?? null
  const isTrusted = ledger.trust(server, subject).epoch === trustEpoch && versionOf(server) === policyVersion
  const hold = ledger.hold(server, subject, lineage)
  const check =
    failed ?? (other !== null ? 'identity' : !isTrusted ? 'trust' : hold !== null ? 'checkpoint' : null)
  if (check === null) return null
  const obstacle = { standing: other, outside: null, hold, word: permits.lastWord(permit) }
  return refusedAtBoundary({ server: { name: server }, subject }, identity, check, obstacle)
}
