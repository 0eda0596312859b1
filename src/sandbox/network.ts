// The network of one sandbox: the door that was made for it, and what its relay is told of names and ports.
import { lstat } from 'node:fs/promises'
import { SallyportError } from '../errors.ts'
import { proxyPort } from '../lib/own-variables.ts'
import type { EgressEndpoint } from '../schema/egress.ts'
import type { ServerSettings } from '../schema/settings.ts'
import type { SandboxUser } from './mounts/reachable.ts'
import { doorTarget, type Mount, type Network } from './spec.ts'

/** Makes the sandbox's door, listening, for the host user under which it will run, and returns its absolute path. */
export type OpenDoor = (user: SandboxUser) => Promise<string>

/** As many listeners and grants as init has room for. */
const maxListeners = 2048
const maxPool = 256
const maxGrants = 512

/**
 * Opens the door, where there is one to open, and returns the sandbox's network.
 *
 * Throws ERR_SANDBOX_UNENFORCEABLE, before anything is opened, or ERR_SANDBOX_SETUP, or as the opener does.
 */
export const planNetwork = async (
  { name, egress }: Pick<ServerSettings, 'name' | 'egress'>,
  openDoor: OpenDoor | null,
  user: SandboxUser,
): Promise<Network> => {
  if (openDoor === null) return { mode: 'none' }
  const grants = distinct(egress)
  const pool = poolFor(name, grants)
  const door = await mountOfDoor(name, await openDoor(user))
  return { mode: 'allowlist', door, grants, proxyPort, pool }
}

const distinct = (grants: readonly EgressEndpoint[]): readonly EgressEndpoint[] => [
  ...new Map(grants.map(({ host, port }) => [`${host}:${port}`, { host, port }])).values(),
]

/**
 * Returns how many addresses names that wildcards match can have at once.
 *
 * Each needs a listener for each port of a wildcard, and each exact name one for each port that it is granted.
 */
export const poolFor = (server: string, grants: readonly EgressEndpoint[]): number => {
  const wild = grants.filter(({ host }) => host.startsWith('*.'))
  const exact = new Set(grants.filter((grant) => !wild.includes(grant)).map(({ host }) => host))
  const wildPorts = new Set(wild.map(({ port }) => port)).size
  const exactListeners = [...exact].reduce((sum, name) => sum + portsOf(name, grants), 0)
  const pool =
    wildPorts === 0 ? 0 : Math.min(maxPool, Math.floor((maxListeners - exactListeners) / wildPorts))
  if (grants.length <= maxGrants && exactListeners <= maxListeners && (wildPorts === 0 || pool > 0))
    return pool
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `egress of server ${server} has ${grants.length} entries, with ${exactListeners} exact names and ports and ${wildPorts} ports of wildcards; ` +
      `${maxGrants} entries and ${maxListeners} names and ports are the most: grant fewer`,
    { server, control: 'egress', grants: grants.length },
  )
}

const portsOf = (name: string, grants: readonly EgressEndpoint[]): number =>
  new Set(
    grants
      .filter(({ host }) => host === name || (host.startsWith('*.') && name.endsWith(host.slice(1))))
      .map(({ port }) => port),
  ).size

const mountOfDoor = async (server: string, source: string): Promise<Mount> => {
  const found = await lstat(source, { bigint: true })
  if (!found.isSocket())
    throw new SallyportError(
      'ERR_SANDBOX_SETUP',
      `the door of ${server} at ${source} is no socket; see who replaces it and launch again`,
      { step: 'plan', server, source },
    )
  const reason = 'the way out to the hosts that are granted'
  const { dev, ino } = found
  return {
    source,
    target: doorTarget,
    access: 'read',
    kind: 'socket',
    dev,
    ino,
    reason,
    origin: 'supervisor',
  }
}
