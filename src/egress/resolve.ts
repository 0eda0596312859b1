// A name becomes addresses once, each is judged, and only those that passed are ever dialled.
import { Resolver } from 'node:dns/promises'
import type { EgressEndpoint, EgressGrant } from '../schema/egress.ts'
import { hostsFile } from './hosts-file.ts'
import { dialledAddresses, judgedAddresses, resolveMs, secondFamilyMs } from './limits.ts'
import { ownAddresses, refusedRange } from '../lib/address-ranges.ts'
import { whenLate } from '../lib/deadline.ts'
import { Refusal } from './refusal.ts'

/** Asks for the addresses of a name; throws a refusal where there are none. */
export type Lookup = (host: string, signal: AbortSignal) => Promise<readonly string[]>

const own = ownAddresses()
const listedAddresses = hostsFile()

/**
 * Returns the addresses of the target that may be dialled, in the order in which to try them: nobody is asked where the
 * grant has one. Throws `address-refused:<range>` where the name has addresses and none passes.
 */
export async function resolve(
  { host }: EgressEndpoint,
  grant: EgressGrant,
  lookup: Lookup,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const named = grant.address === null ? await lookup(host, signal) : [grant.address]
  const found = [...new Set(named)].slice(0, judgedAddresses)
  const judged = found.map((address) => ({
    address,
    range: refusedRange(address, { private: grant.private, own: own() }),
  }))
  const passed = judged.filter(({ range }) => range === null).map(({ address }) => address)
  if (passed.length === 0) throw new Refusal(`address-refused:${judged[0]?.range ?? 'none'}`)
  return passed.slice(0, dialledAddresses)
}

/**
 * Asks /etc/hosts, then the machine's resolvers over sockets of this lookup's own; A before AAAA in what it returns. The
 * name is taken as it stands: search domains are not tried.
 */
export const systemLookup: Lookup = async (host, signal) => {
  const listed = await listedAddresses(host)
  signal.throwIfAborted()
  if (listed.length > 0) return listed
  const resolver = new Resolver({ timeout: resolveMs / 2, tries: 2 })
  const { promise: late, reject } = Promise.withResolvers<never>()
  const inTime = whenLate(resolveMs, () => reject(new Refusal('dns-timeout', 'failed')))
  const onAbort = (): void => reject(Refusal.from(signal.reason))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([bothFamilies(resolver, host), late])
  } finally {
    inTime()
    signal.removeEventListener('abort', onAbort)
    resolver.cancel()
  }
}

/** An alias without an address is an answer to Node */
const noData = Object.assign(new Error('no address'), { code: 'ENODATA' })

/** Both families; once one gave addresses, the other has a moment left, for a server that never answers for it. */
async function bothFamilies(resolver: Resolver, host: string): Promise<readonly string[]> {
  const found: [readonly string[], readonly string[]] = [[], []]
  const ask = async (at: 0 | 1): Promise<void> => {
    found[at] = at === 0 ? await resolver.resolve4(host) : await resolver.resolve6(host)
    if (found[at].length === 0) throw noData
  }
  const asked = [ask(0), ask(1)]
  const settled = Promise.allSettled(asked)
  const first = await Promise.any(asked).catch(() => null)
  if (first === null) throw await noAddress(asked)
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, secondFamilyMs)
  await Promise.race([settled, enough])
  clearTimeout(timer)
  return found.flat()
}

const noSuchName = new Set(['ENOTFOUND', 'ENODATA'])

async function noAddress(asked: readonly Promise<void>[]): Promise<Refusal> {
  const outcomes = await Promise.allSettled(asked)
  const codes = outcomes.map((it) => (it.status === 'rejected' ? String(it.reason?.code) : ''))
  if (codes.includes('ETIMEOUT')) return new Refusal('dns-timeout', 'failed')
  return new Refusal(codes.some((code) => noSuchName.has(code)) ? 'name-not-found' : 'dns-failed', 'failed')
}
