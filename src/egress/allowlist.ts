// Which grant lets a connection out, if any: exact host and port, or one pattern below a name.
import { canonicalHost } from '../lib/host-name.ts'
import type { EgressEndpoint, EgressGrant } from '../schema/egress.ts'
import { Refusal } from './refusal.ts'

/**
 * Returns the grant for a target, an exact name before a pattern and a longer pattern before a shorter one; throws
 * name-not-listed, or port-not-listed where the name is there with other ports only.
 */
export function grantFor(grants: readonly EgressGrant[], { host, port }: EgressEndpoint): EgressGrant {
  const named = grants.filter((grant) => matches(grant.host, host))
  const [found] = named
    .filter((grant) => grant.port === port)
    .sort((a, b) => precision(b.host) - precision(a.host))
  if (found !== undefined) return found
  throw new Refusal(named.length === 0 ? 'name-not-listed' : 'port-not-listed')
}

/**
 * Whether a canonical host falls under a pattern: the same name, or for `*.name` any name with one or more labels in
 * front of it. `*.name` is not `name` itself, and its name has two labels at least.
 */
export function matches(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host
  return host.length > pattern.length - 1 && host.endsWith(pattern.slice(1))
}

/** Whether a pattern is written as a grant must be: canonical, and with two labels at least behind `*.`. */
export function isPattern(pattern: string): boolean {
  const name = pattern.startsWith('*.') ? pattern.slice(2) : pattern
  return canonicalHost(name) === name && (name === pattern || name.includes('.'))
}

const precision = (pattern: string): number =>
  pattern.startsWith('*.') ? pattern.length : Number.MAX_SAFE_INTEGER
