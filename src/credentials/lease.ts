// The secrets of one permit, from its dispatch to its end.
import type { Injection, InjectionKind, Lease, LeaseRequest } from '../schema/credentials.ts'

/** A value, and one way in which it reaches the server. */
export interface Leased {
  readonly injection: Injection
  readonly value: Buffer
}

/** Why what hangs on a lease ends. One for all: the one that `abort()` would make takes 0.1 ms, for a stack that nobody reads. */
export const leaseOver = new Error('the lease is over')

/** Returns a lease that runs: it ends by itself after `deadlineMs`, and its values are zeroed then. */
export const leaseOf = (
  { permit, deadlineMs, attribution }: LeaseRequest,
  leased: readonly Leased[],
  over: AbortController,
): Lease => {
  const by = (kind: InjectionKind): readonly Leased[] =>
    over.signal.aborted ? [] : leased.filter(({ injection }) => injection.inject === kind)
  const texts = (kind: InjectionKind): Readonly<Record<string, string>> =>
    Object.fromEntries(by(kind).map(({ injection, value }) => [injection.as, value.toString('utf8')]))
  const end = (): void => {
    if (over.signal.aborted) return
    clearTimeout(timer)
    over.abort(leaseOver)
    for (const { value } of leased) value.fill(0)
  }
  const timer = setTimeout(end, deadlineMs).unref()

  return {
    permit,
    names: [...new Set(leased.map(({ injection }) => injection.use))],
    exposed: leased.some(({ injection }) => injection.inject !== 'egress'),
    attribution,
    meta: () => (by('meta').length === 0 ? null : texts('meta')),
    environment: () => texts('env'),
    files: () =>
      by('file').map(({ injection, value }) => ({
        name: injection.as,
        variable: injection.as,
        content: Uint8Array.from(value),
      })),
    ended: over.signal,
    end,
    [Symbol.dispose]: end,
  }
}
