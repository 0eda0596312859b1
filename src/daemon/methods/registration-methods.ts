// How servers come and go while the daemon runs: the operator registers, hosts launch within what the operator allowed.
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SallyportError } from '../../errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { HostMethods, OperatorMethods } from '../../rpc/protocol.ts'
import type { LaunchRequest } from '../../rpc/governed.ts'
import type { Caller } from '../../supervisor/ports.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import { actor } from '../governance/actor.ts'
import { digestOfProfile } from '../governance/applied.ts'
import type { Governance } from '../governance/governance.ts'
import type { Machine } from '../machine/machine.ts'
import type { MethodTable } from './methods.ts'
import { launchEntry, notLaunched, type Registered, type Roster } from '../roster.ts'
import type { InTurn } from '../turns.ts'

export interface RegistrationPorts {
  readonly roster: Roster
  readonly supervisor: Supervisor
  readonly governance: Governance
  readonly machine: Pick<Machine, 'pin' | 'originOf'>
  /** One at a time with the reloads of the configuration */
  readonly inTurn: InTurn
}

/** What a registration must say in so many words; the name is the seventh. */
const stated = ['command', 'version', 'trust', 'justification', 'tags'] as const

/** Puts back what was registered in an earlier life; what the configuration no longer allows is told and left out. */
export async function restoreRegistered(
  { roster, supervisor }: Pick<RegistrationPorts, 'roster' | 'supervisor'>,
  log: Logger,
): Promise<void> {
  for (const { server, entry, directory } of roster.registered()) {
    try {
      const judged = await roster.judge(server, entry, { directory, scope: 'registered' })
      roster.add(judged, null)
      supervisor.add(judged.server, null)
    } catch (error) {
      const { code, message } = SallyportError.from(error)
      log.warn({ server, code, reason: message }, 'registered server is left out')
    }
  }
}

/** `servers/launch` and `servers/remove`, for both sockets: a host has power over its own servers alone. */
export function launchMethods(ports: RegistrationPorts): MethodTable<'servers/launch' | 'servers/remove'> {
  return {
    'servers/launch': (request, { caller }) => launch(ports, request, caller),
    'servers/remove': ({ server }, { caller }) => ports.inTurn(() => remove(ports, server, caller)),
  }
}

/** `servers/add`, the operator's alone. */
export function registrationMethods(ports: RegistrationPorts): MethodTable<'servers/add'> {
  return { 'servers/add': (params, { caller }) => ports.inTurn(() => register(ports, params, caller)) }
}

async function register(
  { roster, supervisor, governance }: RegistrationPorts,
  { server, entry, directory = '/' }: OperatorMethods['servers/add']['params'],
  caller: Caller,
): Promise<OperatorMethods['servers/add']['result']> {
  expectFree(roster, server)
  expectStated(server, entry)
  const judged = await roster.judge(server, entry, { directory, scope: 'registered' })
  const registered: Registered = { server, entry, directory, by: caller.principal.id }
  await governance.recorder.record('server.registered', { ...registered, ...actor(caller) })
  roster.add(judged, null)
  supervisor.add(judged.server, null)
  return supervisor.get(caller, server)
}

async function launch(
  { roster, supervisor, governance, machine }: RegistrationPorts,
  request: LaunchRequest,
  caller: Caller,
): Promise<HostMethods['servers/launch']['result']> {
  const { name, package: code } = request
  const launched = { owner: caller.principal.id, request }
  launchEntry(roster.settings, launched) // or hosts may launch nothing
  expectNobodys(roster, name)
  expectRoom(roster, name, caller)
  for (const path of code === undefined ? [] : [code.source, ...(code.with ?? [])])
    await expectReadable(name, path, caller)
  let revision: number
  let judged: Awaited<ReturnType<Roster['judgeLaunch']>>
  do {
    revision = roster.revision // what comes or is reloaded while it is judged has a say
    judged = await roster.judgeLaunch(launched)
    await machine.pin(judged.server)
    expectNotQuarantined(governance, name, machine.originOf(judged.server), caller)
    expectNobodys(roster, name)
    expectRoom(roster, name, caller)
  } while (revision !== roster.revision)
  roster.add(judged, launched)
  try {
    // Whatever was accepted under this name before was another server.
    await forget(governance, name, caller)
    await governance.recorder.record('server.launched', {
      server: name,
      entry: launchEntry(roster.settings, launched),
      code: governance.codeOf(judged.server),
      profile_digest: digestOfProfile(judged.profile),
      under: governance.applied('dynamic.applied'),
      ...actor(caller),
    })
  } catch (error) {
    roster.remove(name)
    // A reload may have put it where it was to stand.
    if (!roster.isConfigured(name)) await supervisor.replace(name, null, 'it could not be recorded')
    throw error
  }
  const present = roster.settings.servers.get(name)
  if (present === undefined || roster.ownerOf(name) !== launched.owner)
    throw notLaunched(name, 'the configuration that was just loaded does not allow it', 'launch it anew')
  if (!supervisor.has(name)) supervisor.add(present, launched.owner)
  return supervisor.get(caller, name)
}

async function remove(
  { roster, supervisor, governance }: RegistrationPorts,
  server: string,
  caller: Caller,
): Promise<HostMethods['servers/remove']['result']> {
  supervisor.settingsOf(caller, server) // or there is no such server for this caller
  if (caller.role !== 'operator' && roster.ownerOf(server) !== caller.principal.id)
    throw new SallyportError(
      'ERR_NOT_AUTHORISED',
      `${server} is the operator's; hosts remove only what they launched themselves`,
      { server },
    )
  if (roster.isConfigured(server))
    throw new SallyportError(
      'ERR_CONFIG_SCOPE',
      `${server} stands in the configuration; take it out there, or set enabled: false`,
      { server },
    )
  const permits = await forget(governance, server, caller)
  const stopped = await supervisor.remove(caller, server)
  roster.remove(server)
  return { removed: server, stopped, permits }
}

/** Ends everything that stood on a server's name; resolves with the permits that ended. */
async function forget(governance: Governance, server: string, caller: Caller): Promise<readonly string[]> {
  const body = { server, by: caller.principal.id }
  await governance.add({ type: 'server.removed', body }, { ...actor(caller) })
  const isOf = (identity: string): boolean => identity.startsWith(`${server}/`)
  governance.approvals.void(({ identity }) => isOf(identity))
  return governance.permits.revoke(({ binding }) => isOf(binding.identity))
}

/** One host's servers leave room for the next one's, and all of them for the machine's own work. */
function expectRoom(roster: Roster, name: string, { principal: { id } }: Caller): void {
  const { maxDynamicServers, dynamic } = roster.settings
  if (roster.launchedBy(id) >= maxDynamicServers)
    throw notLaunched(
      name,
      `max_dynamic_servers (${maxDynamicServers}) of uid ${id} is reached`,
      'remove one first',
    )
  if (roster.launched >= dynamic.inAll)
    throw notLaunched(
      name,
      `dynamic.in_all (${dynamic.inAll}) is reached by all hosts together`,
      'wait until one is removed',
    )
}

/** A registration that waits for a configuration which allows it keeps its name, and what was accepted under it. */
function expectNobodys(roster: Roster, server: string): void {
  if (roster.isRegistered(server)) throw taken(server)
  expectFree(roster, server)
}

function expectFree({ settings }: Roster, server: string): void {
  if (settings.servers.has(server) || server === 'sallyport') throw taken(server)
}

const taken = (server: string): SallyportError =>
  new SallyportError('ERR_SERVER_EXISTS', `the name ${server} is taken; choose another`, { server })

/** What was halted stays halted, whatever its next name is: for its own principal, or for all where it was the operator's. */
function expectNotQuarantined(
  { ledger }: Governance,
  name: string,
  origin: string | null,
  { principal }: Caller,
): void {
  const halt = ledger
    .quarantined()
    .find(
      ({ server, owner, origin: halted }) =>
        server === name || (halted !== null && halted === origin && (owner ?? principal.id) === principal.id),
    )
  if (halt === undefined) return
  if ((halt.owner ?? principal.id) !== principal.id)
    throw notLaunched(name, 'what had this name before is quarantined', 'choose another name')
  const what = halt.server === name ? 'it' : `the same thing, as ${halt.server},`
  throw notLaunched(
    name,
    `${what} is quarantined (${halt.failure}): ${halt.reason}`,
    `the operator releases it: sallyport release ${halt.server}`,
  )
}

function expectStated(server: string, entry: Readonly<Record<string, unknown>>): void {
  const missing = stated.filter((key) => entry[key] === undefined || entry[key] === '')
  const isDeclared = entry['declaration'] !== undefined || entry['acceptance'] !== undefined
  if (missing.length === 0 && isDeclared) return
  const what = [...missing, ...(isDeclared ? [] : ['declaration or acceptance'])].join(', ')
  throw new SallyportError(
    'ERR_INVALID_PARAMS',
    `servers/add: the entry of ${server} does not say ${what}; a registration states them all`,
    { server },
  )
}

/**
 * Code that a host names must be code that any user of the machine may read, or the sandbox would show the host files
 * that only the daemon can open. Of what lies in a closed folder a host does not even learn whether it is there.
 */
async function expectReadable(server: string, path: string, { principal, role }: Caller): Promise<void> {
  if (role === 'operator' || principal.attributes.uid === process.geteuid?.()) return
  await expectOpen(server, path, path)
  await expectOpen(server, path, await realpath(path).catch(() => path)) // where links lead
}

/** From the root on, and no further than the first folder that is closed. */
async function expectOpen(server: string, path: string, way: string): Promise<void> {
  const steps = [way]
  for (let at = way; at !== dirname(at); at = dirname(at)) steps.unshift(dirname(at))
  for (const at of steps) {
    const bits = at === way ? 0o5 : 0o1
    const found = await stat(at).catch(() => null)
    if (found === null || (found.mode & bits) !== bits)
      throw notLaunched(server, `${path} is not a folder that every user may read`, `chmod o+rX ${at}`)
  }
}
