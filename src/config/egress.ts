// The hosts that a server's entry lists: one word for each host and port, and nothing that reads like another thing.
import { isIP } from 'node:net'
import { refusedRange } from '../lib/address-ranges.ts'
import { canonicalHost } from '../lib/host-name.ts'
import { secretShape } from '../lib/secret-shape.ts'
import { type EgressGrant, tlsPorts } from '../schema/egress.ts'
import type { Step } from '../schema/problem.ts'
import type { NetworkGrant } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Document } from './document.ts'
import { issue, type Issue } from './refusal.ts'

type Entry = Config['servers'][string]['egress'][number]

/** An entry as the proxy takes it: `tls: auto` is settled by the port. */
export function grantOf({ host, port, address, private: isPrivate, tls, reason }: Entry): EgressGrant {
  return { host, port, address, private: isPrivate, tls: tls === 'auto' ? tlsPorts.has(port) : tls, reason }
}

/** One issue for each entry that another one already decides, and for each host that is a secret by its looks. */
export function checkEgress(
  { egress }: Config['servers'][string],
  document: Document,
  at: readonly Step[],
): readonly Issue[] {
  return egress.flatMap((entry, index) => {
    const place = [...at, index]
    const shape = secretShape(entry.host)
    if (shape !== null) {
      const said = { got: `what looks like ${shape}`, expected: 'a host', mend: 'remove it, and replace it' }
      return [issue('ERR_CONFIG_INVALID', document, [...place, 'host'], said)]
    }
    const unread = whyNoHost(entry)
    if (unread !== null) return [issue('ERR_CONFIG_INVALID', document, [...place, 'host'], unread)]
    const pinned = whyNotPinned(entry)
    if (pinned !== null) return [issue('ERR_CONFIG_INVALID', document, [...place, 'address'], pinned)]
    const same = egress.findIndex(({ host, port }) => host === entry.host && port === entry.port)
    if (same < index) {
      const got = `${entry.host}:${entry.port} a second time (egress[${same}] has it)`
      return [
        issue('ERR_CONFIG_INVALID', document, place, { got, expected: 'each once', mend: 'remove one' }),
      ]
    }
    const above = egress.findIndex((other) => isWithin(entry, other))
    if (above === -1) return []
    const said = {
      got: `${entry.host}:${entry.port}, which ${egress[above]?.host ?? ''} of egress[${above}] covers in other words`,
      expected: 'entries of which each name has one: the same `address`, `private` and `tls`, or no overlap',
      mend: 'say the same in both, or narrow the pattern',
    }
    return [issue('ERR_CONFIG_INVALID', document, place, said)]
  })
}

/** What is wrong with the host of an entry that is well-formed, of a server or a profile; null where nothing is. */
export function whyNoHost({
  host,
}: Pick<NetworkGrant, 'host'>): { readonly expected: string; readonly mend: string } | null {
  const name = host.startsWith('*.') ? host.slice(2) : host
  if (canonicalHost(name) === name) return null
  return {
    expected: 'a host name that everybody reads alike',
    mend: 'write the name in lower case, letters beyond ASCII as the A-labels (xn--…) that they have',
  }
}

/**
 * What is wrong with the address of an entry, of a server or a profile; null where nothing is. Whether it is this machine's
 * own is judged at each connection, since that changes.
 */
export function whyNotPinned({
  host,
  address,
  private: isPrivate,
}: Pick<NetworkGrant, 'host' | 'address' | 'private'>): {
  readonly got?: string
  readonly expected: string
  readonly mend: string
} | null {
  if (address === null) return null
  if (isIP(address) === 0)
    return { expected: 'an IPv4 or IPv6 address, without a zone', mend: 'write it out, or remove it' }
  if (host.startsWith('*.'))
    return { expected: 'no address for a pattern', mend: 'name each host that has the address' }
  const range = refusedRange(address, { private: isPrivate, own: nobodys })
  if (range === null) return null
  const got = `${JSON.stringify(address)} (${range})`
  return refusedRange(address, { private: true, own: nobodys }) === null
    ? {
        got,
        expected: 'a public address, or `private: true` beside it',
        mend: 'say `private: true`, or remove it',
      }
    : { got, expected: 'an address that a sandbox may reach, which none of that kind is', mend: 'remove it' }
}

const nobodys: ReadonlySet<string> = new Set()

/** True where a pattern covers the entry and says something else of it: two readers would take two words for the truth. */
function isWithin(entry: Entry, { host, port, address, private: isPrivate, tls }: Entry): boolean {
  if (!host.startsWith('*.') || port !== entry.port || host === entry.host) return false
  const isCovered = entry.host.endsWith(host.slice(1))
  return isCovered && (address !== entry.address || isPrivate !== entry.private || tls !== entry.tls)
}
