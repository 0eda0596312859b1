// What a host gets under a profile: its own loopback, a name of the list, or nothing.
import { isIP } from 'node:net'
import { canonicalHost } from '../lib/host-name.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { coversHost, targetOf } from './narrowing.ts'
import { unusable, type Verdict } from './profile-verdict.ts'

/** Names and addresses of a sandbox's own loopback interface. */
const ownHosts = /^(localhost|sandbox|127(\.[0-9]{1,3}){3}|::1)$/

/** Explains a host name or an address, with a port or without; ERR_USAGE where it is neither. */
export function explainHost({ network }: ProfileSettings, name: string): Verdict {
  const { host, port } = hostAndPort(name)
  if (ownHosts.test(host))
    return {
      gets: 'own',
      because: 'the sandbox’s own loopback interface, with nobody of the host behind it',
      key: null,
    }
  if (network.mode === 'none')
    return {
      gets: 'unreachable',
      because: 'the network is empty: no name resolves and no address answers',
      key: 'network.mode',
    }
  if (isIP(host) !== 0)
    return {
      gets: 'unreachable',
      because: 'connections go to names of the list, never to addresses',
      key: 'network.mode',
    }
  const index = network.allow.findIndex((above) => coversHost(above, { host, port: port ?? above.port }))
  const entry = network.allow[index]
  if (entry === undefined) {
    const other = network.allow.find((above) => coversHost(above, { host, port: above.port }))
    const because =
      other === undefined
        ? 'the list does not have it: the name does not resolve'
        : `the list has it with another port, ${other.port}: the name may resolve, and this port is refused`
    return { gets: 'unreachable', because, key: 'network.allow' }
  }
  const where = entry.private ? ', on private addresses too' : ''
  const because = `a server’s entry may ask for ${targetOf(entry)}${where}: ${entry.reason}`
  return { gets: 'allowed', because, key: `network.allow[${index}]` }
}

/** A name in its one spelling, or an address; the port where one is said. */
function hostAndPort(name: string): { readonly host: string; readonly port: number | null } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]]+))(?::([0-9]{1,5}))?$/.exec(name)
  const text = isIP(name) === 0 ? (match?.[1] ?? match?.[2] ?? '') : name
  const port = match?.[3] === undefined || isIP(name) !== 0 ? null : Number(match[3])
  const host = isIP(text) === 0 ? canonicalHost(text) : text.toLowerCase()
  if (host !== null && (port === null || (port > 0 && port < 65_536))) return { host, port }
  throw unusable('host', name, 'a host name or an address, with :port or without')
}
