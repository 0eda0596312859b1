// How servers come and go while the daemon runs: the operator registers, hosts launch within what the operator allowed.
import { SallyportError } from '../../errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { HostMethods, OperatorMethods } from '../../rpc/protocol.ts'
import type { LaunchRequest } from '../../rpc/governed.ts'
import { judgeOwnTargets } from '../../sandbox/mounts/filesystem.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Caller } from '../../supervisor/ports.ts'
import type { Supervisor } from '../../supervisor/supervisor.ts'
import { actor } from '../governance/actor.ts'
import { digestOfProfile } from '../governance/applied.ts'
import type { Governance } from '../governance/governance.ts'
import type { Machine } from '../machine/machine.ts'
import type { MethodCall, MethodTable } from './methods.ts'
import { launchEntry, type Launched, notLaunched, type Registered } from '../entries.ts'
import type { Roster } from '../roster.ts'
import { type InTurn, turnsByName } from '../turns.ts'
import { expectNotQuarantined, expectRoom, expectUnlike, isOperators, taken } from './launch-limits.ts'
import { expectReadable, isForeign } from './open-code.ts'
import { expectOpenEntry, expectOpenName, type Finder } from './no-secret.ts'
import { expectStated } from './stated.ts'

export interface RegistrationPorts {
  readonly roster: Roster
  readonly supervisor: Supervisor
  readonly governance: Governance
  readonly machine: Pick<Machine, 'pin' | 'unpin' | 'originOf'>
  /** Throws where a server would run as somebody who is a host, or change what is said of the separation from hosts */
  readonly expectApart: (server: ServerSettings) => void
  readonly redactor: Finder
  /** One at a time with the reloads of the configuration */
  readonly inTurn: InTurn
  /** Aborts when the daemon goes down */
  readonly stopping: AbortSignal
}

/** Puts back what was registered in an earlier life; what the configuration no longer allows is told and left out. */
export async function restoreRegistered(
  { roster, supervisor, expectApart }: Pick<RegistrationPorts, 'roster' | 'supervisor' | 'expectApart'>,
  log: Logger,
): Promise<void> {
  for (const { server, entry, directory } of roster.registered()) {
    try {
      const judged = await roster.judge(server, entry, { directory, scope: 'registered' })
      expectApart(judged.server)
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
  const inTurnOf = turnsByName()
  return {
    // One at a time of each principal: its code is read while others are served.
    'servers/launch': (request, { caller, signal }) =>
      inTurnOf(caller.principal.id, () => launch(ports, request, caller, { signal })),
    'servers/remove': ({ server }, { caller }) => remove(ports, server, caller),
  }
}

/** `servers/add`, the operator's alone. */
export function registrationMethods(ports: RegistrationPorts): MethodTable<'servers/add'> {
  return { 'servers/add': (params, call) => register(ports, params, call) }
}

/** What could never be launched is not registered: its code is read beside everything else; what is recorded takes a turn. */
async function register(
  ports: RegistrationPorts,
  { server, entry, directory = '/' }: OperatorMethods['servers/add']['params'],
  { caller, signal }: MethodCall,
): Promise<OperatorMethods['servers/add']['result']> {
  const { roster, machine, inTurn, stopping } = ports
  if (roster.isTaken(server)) throw taken(server)
  expectStated(server, entry)
  using _kept = roster.expect(server, null)
  const registered: Registered = { server, entry, directory, by: caller.principal.id }
  const waiting = { signal: AbortSignal.any([signal, stopping]) }
  for (;;) {
    const settings = roster.current()
    const judged = await roster.judge(server, entry, { directory, scope: 'registered' })
    judgeOwnTargets(judged.server)
    ports.expectApart(judged.server)
    expectOpenEntry(ports.redactor, registered)
    try {
      if (judged.server.enabled) await machine.pin(judged.server, waiting)
      const view = await inTurn(async () => {
        waiting.signal.throwIfAborted()
        return settings === roster.current() ? enrol(ports, judged, registered, caller) : null
      })
      if (view !== null) return view
      if (roster.settings.servers.has(server)) throw taken(server)
    } catch (error) {
      if (!roster.stands(server)) machine.unpin([judged.server])
      throw error
    }
  }
}

/** Puts on record what was judged and pinned, then takes it. */
async function enrol(
  { roster, supervisor, governance }: RegistrationPorts,
  judged: Awaited<ReturnType<Roster['judge']>>,
  registered: Registered,
  caller: Caller,
): Promise<OperatorMethods['servers/add']['result']> {
  await governance.recorder.record('server.registered', { ...registered, ...actor(caller) })
  roster.add(judged, null)
  supervisor.add(judged.server, null)
  governance.resume([registered.server]) // what was quarantined under this name is, until it is released
  return supervisor.get(caller, registered.server)
}

async function launch(
  ports: RegistrationPorts,
  request: LaunchRequest,
  caller: Caller,
  { signal }: { readonly signal: AbortSignal },
): Promise<HostMethods['servers/launch']['result']> {
  const { roster, governance, machine } = ports
  const { name, package: code } = request
  const launched = { owner: caller.principal.id, request }
  signal.throwIfAborted()
  launchEntry(roster.settings, launched) // or hosts may launch nothing
  expectOpenName(ports.redactor, name)
  if (roster.isTaken(name) || isOperators(ports, name)) throw taken(name)
  expectUnlike(roster, name, caller)
  expectRoom(ports, name, caller)
  using _kept = roster.expect(name, launched.owner)
  const paths = code === undefined ? [] : [code.source, ...(code.with ?? [])]
  for (const path of paths) await expectReadable(name, path, caller)
  for (;;) {
    const settings = roster.current()
    const judged = await roster.judgeLaunch(launched)
    judgeOwnTargets(judged.server)
    try {
      await machine.pin(judged.server, { signal, isOpen: isForeign(caller) })
      while (roster.goingOver !== null) await roster.goingOver
      expectNotQuarantined(governance, name, machine.originOf(judged.server), caller)
      signal.throwIfAborted()
      expectUnlike(roster, name, caller)
      if (settings === roster.current()) return await begin(ports, judged, launched, caller)
      if (roster.settings.servers.has(name) || isOperators(ports, name)) throw taken(name)
    } catch (error) {
      if (!roster.stands(name)) machine.unpin([judged.server])
      throw error
    }
  }
}

/** Takes what was judged and pinned, in this turn, and puts it on record. */
async function begin(
  { roster, supervisor, governance }: RegistrationPorts,
  judged: Awaited<ReturnType<Roster['judgeLaunch']>>,
  launched: Launched,
  caller: Caller,
): Promise<HostMethods['servers/launch']['result']> {
  const { name } = judged.server
  roster.add(judged, launched)
  try {
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
  { roster, supervisor, governance, machine, inTurn }: RegistrationPorts,
  server: string,
  caller: Caller,
): Promise<HostMethods['servers/remove']['result']> {
  expectOwn({ roster, supervisor }, server, caller)
  // Before their calls end with the server, each of which takes its own along.
  const revoked = governance.revoke(server)
  // Who takes long to stop holds up nobody's reload.
  const everybody = { ...caller, role: 'operator' } as const
  const reason = `${caller.role} ${caller.principal.id} removed it`
  const before = await supervisor.stop(everybody, server, reason)
  return inTurn(async () => {
    const settings = supervisor.settingsOf(caller, server)
    expectOwn({ roster, supervisor }, server, caller)
    const owner = roster.ownerOf(server)
    const stay = roster.leave(server)
    try {
      const stopped = await supervisor.remove(caller, server)
      const permits = await governance.remove(
        server,
        owner === null ? 'registered' : 'dynamic',
        actor(caller),
      )
      machine.unpin([settings])
      roster.remove(server)
      return { removed: server, stopped: [...before, ...stopped], permits: [...revoked, ...permits] }
    } catch (error) {
      stay()
      supervisor.add(settings, owner)
      governance.resume([server])
      throw error
    }
  })
}

/** Throws unless the caller may remove a server of that name. */
function expectOwn(
  { roster, supervisor }: Pick<RegistrationPorts, 'roster' | 'supervisor'>,
  server: string,
  caller: Caller,
): void {
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
}
