// What stands in the way to hosts that carry a credential: it reads what goes up, swaps, and redacts what comes down.
import { late } from '../../lib/late.ts'
import { LoopTurns } from '../../lib/loop-turns.ts'
import type { InterceptorAuthority, InterceptorOptions } from '../../schema/credentials.ts'
import type { EgressEndpoint, Interceptor } from '../../schema/egress.ts'
import { serveConnection } from './connection.ts'
import { type InterceptLimits, interceptLimits } from './limits.ts'
import { systemRoots } from './roots.ts'
import { requestReader } from './strict-server.ts'
import { HostTrust } from './upstream.ts'

// It takes 100 ms to load: a daemon whose servers have no such credential does without.
const signing = late(() => import('./signer.ts'))

/**
 * Returns the interceptor of one sandbox, with an authority of its own for exactly the hosts that its entries name.
 *
 * Hosts without a credential are left to the tunnel.
 */
export const createInterceptor = async (
  { server, life, swap, redactor }: InterceptorOptions,
  limits: InterceptLimits = interceptLimits,
): Promise<Interceptor & InterceptorAuthority> => {
  const carriers = swap.injections.filter(({ inject }) => inject === 'egress').flatMap(({ hosts }) => hosts)
  const trusts = new Map<string, HostTrust>()
  for (const { host, port, caFile } of carriers) {
    const key = `${host}:${port}`
    if (caFile !== null || !trusts.has(key)) trusts.set(key, new HostTrust(caFile))
  }
  const trustOf = ({ host, port }: EgressEndpoint): HostTrust | undefined => trusts.get(`${host}:${port}`)
  const { createSigner } = await signing()
  const signer = await createSigner(server, [...new Set(carriers.map(({ host }) => host))], life)
  const readRequests = requestReader(limits)
  const turns = new LoopTurns()

  return {
    certificate: signer.certificate,
    bundle: `${systemRoots().trimEnd()}\n${signer.certificate}\n`,
    intercepts: (target) => trustOf(target) !== undefined,
    async serve(client, target, dial, log) {
      const trust = trustOf(target)
      if (trust === undefined) throw new Error(`${target.host}:${target.port} carries no credential`)
      await serveConnection(
        { swap, redactor, signer, trust, limits, readRequests, turns },
        client,
        target,
        dial,
        log,
      )
    },
  }
}
