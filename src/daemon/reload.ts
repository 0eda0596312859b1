// A reload: the same files and options as at the start, wholly or not at all, and only what they change is stopped.
import { warningsOfStrangers } from '../config/rule-warnings.ts'
import { SallyportError } from '../errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import type { Caller, Emit } from '../supervisor/ports.ts'
import type { Supervisor } from '../supervisor/supervisor.ts'
import { actor } from './governance/actor.ts'
import { recordReload } from './governance/applied.ts'
import { digestOfEntry } from './governance/entry.ts'
import { event } from './governance/failure-events.ts'
import type { Governance } from './governance/governance.ts'
import type { Machine } from './machine/machine.ts'
import { ourselves } from './ourselves.ts'
import { digestOfPolicy } from './governance/policy.ts'
import type { LeftOut, Roster } from './roster.ts'
import type { InTurn } from './turns.ts'

/** What a reload came to. */
export type Reloaded = OperatorMethods['daemon/reload']['result']

export interface ReloadPorts {
  /** Reads the configuration as the start did */
  readonly load: (waiting: { readonly signal: AbortSignal }) => Promise<Settings>
  /** Throws where the daemon can't go over to these settings while it runs; what it returns, where a server can't be beside them */
  readonly judgeApart: (next: Settings) => (server: ServerSettings) => void
  /** Told of what goes on after the answer */
  readonly begun: (work: Promise<void>) => void
  readonly roster: Roster
  readonly supervisor: Supervisor
  readonly governance: Governance
  readonly machine: Pick<Machine, 'registerAll' | 'isAsPinned' | 'unpin' | 'pools'>
  readonly emit: Emit
  readonly log: Logger
  /** Aborted when the daemon goes down */
  readonly signal: AbortSignal
  /** One reload at a time, from the reading of its files on */
  readonly inTurn: InTurn
  /** One at a time with whatever else changes which servers there are; nobody waits in it for files to be read */
  readonly inRosterTurn: InTurn
}

/** Which servers another configuration changes, by name. */
interface Changes {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  readonly unchanged: readonly string[]
}

/**
 * Loads the configuration and goes over to it, after reloads that were asked for before. Resolves when what it changes or takes
 * away is stopped; what starts by itself is on its way. Throws what loading throws, and ERR_CONFIG_RESTART for what
 * takes a restart: then everything is as it was, and the refusal is on record.
 */
export function reload(ports: ReloadPorts, caller: Caller): Promise<Reloaded> {
  return ports.inTurn(() => reloadNow(ports, caller))
}

/**
 * The same on the daemon's own word, as a signal gives it, which hears of no answer: however often it is given before its turn
 * has come, there is one.
 */
export function reloadsOnWord(ports: ReloadPorts): () => Promise<Reloaded> {
  let next: Promise<Reloaded> | null = null
  return () =>
    (next ??= ports.inTurn(() => {
      next = null
      return reloadNow(ports, ourselves())
    }))
}

async function reloadNow(ports: ReloadPorts, caller: Caller): Promise<Reloaded> {
  const { load, judgeApart, governance, emit, log, signal, inRosterTurn } = ports
  try {
    signal.throwIfAborted()
    const next = await load({ signal })
    const expectApart = judgeApart(next)
    for (const warning of next.warnings) log.warn({ warning }, 'configuration')
    const replaced = await otherCode(ports) // of what is added meanwhile, the code was read only now
    return await inRosterTurn(() => {
      signal.throwIfAborted()
      return goOver(ports, { next, expectApart, replaced }, caller)
    })
  } catch (thrown) {
    const { code, message, details } = SallyportError.from(thrown)
    log.error({ code, reason: message }, 'configuration refused; the former one holds')
    emit(event('config/refused', null, { code, reason: message }, 'operator'))
    // The journal's own failure is told of by the journal.
    const refusal = { code, reason: message, ...actor(caller) }
    await governance.recorder.record('config.refused', refusal).catch(() => undefined)
    throw new SallyportError(code, message, details, { cause: thrown })
  }
}

/** A configuration that may be gone over to. */
interface Accepted {
  readonly next: Settings
  readonly expectApart: (server: ServerSettings) => void
  /** Servers whose code is to be pinned anew */
  readonly replaced: ReadonlySet<string>
}

async function goOver(
  ports: ReloadPorts,
  { next, expectApart, replaced }: Accepted,
  caller: Caller,
): Promise<Reloaded> {
  const { roster, supervisor, governance, machine, emit, log, begun } = ports
  let changes: Changes = { added: [], changed: [], removed: [], unchanged: [] }
  let leftOut: readonly LeftOut[] = []
  let ended: ReturnType<Governance['reloaded']> = { permits: [], approvals: [] }
  let stops: readonly Promise<unknown>[] = []
  await roster.goOver(next, {
    expectApart,
    record: (gone) =>
      governance.removeWith(gone, actor(caller), () => recordReload(governance, next, { ...actor(caller) })),
    // In one turn: no call is decided by the one and sent under the other.
    goneOver: (before, left) => {
      const now = roster.current()
      changes = compare(before, now, replaced)
      leftOut = left
      const affected = [...changes.changed, ...changes.removed]
      machine.unpin(settingsOf(before, affected))
      machine.pools.trim()
      stops = affected.map((name) => supervisor.replace(name, inPlaceOf(roster, name), reasonOf(now, name)))
      for (const server of settingsOf(now, changes.added)) supervisor.add(server, roster.ownerOf(server.name))
      governance.resume(changes.added)
      const isSamePolicy = digestOfPolicy(before) === digestOfPolicy(now)
      ended = governance.reloaded(isSamePolicy ? new Set(affected) : null)
      supervisor.review()
    },
  })
  for (const { server, code, reason } of leftOut) log.warn({ server, code, reason }, 'server is left out')
  const strangers = warningsOfStrangers(roster.current())
  for (const warning of strangers) log.warn({ warning }, 'configuration')
  const result = { ...changes, left_out: leftOut, warnings: [...next.warnings, ...strangers] }
  emit(event('config/applied', null, { ...changes }, 'operator'))
  const stopped = Promise.allSettled(stops)
  await governance.recorder
    .record('config.effect', { ...result, ...ended, ...actor(caller) })
    .catch(() => undefined)
  for (const stop of await stopped)
    if (stop.status === 'rejected') log.error({ err: stop.reason }, 'server that was reloaded is not gone')
  begun(begin(ports, [...changes.changed, ...changes.added]))
  log.info({ ...changes }, 'configuration reloaded')
  return result
}

/** What is known at once of these servers, and those that start without being asked, as when the daemon starts. */
async function begin(
  { roster, supervisor, machine, log, signal }: ReloadPorts,
  names: readonly string[],
): Promise<void> {
  try {
    await machine.registerAll(settingsOf(roster.settings, names), { signal })
    await supervisor.startEager(ourselves(), names, { signal })
  } catch (error) {
    log.error({ err: error }, 'servers that were reloaded could not be started')
  }
}

/** The servers whose program or package is not what was pinned: a reload is the word that what is there now is meant. */
async function otherCode({ roster, machine, signal }: ReloadPorts): Promise<ReadonlySet<string>> {
  const replaced = new Set<string>()
  for (const server of roster.settings.servers.values())
    if (!(await machine.isAsPinned(server, { signal }))) replaced.add(server.name)
  return replaced
}

function compare(before: Settings, now: Settings, replaced: ReadonlySet<string>): Changes {
  const names = [...now.servers.keys()]
  const isSame = (name: string): boolean => {
    const [old, fresh] = [before.servers.get(name), now.servers.get(name)]
    if (old === undefined || fresh === undefined || replaced.has(name)) return false
    return digestOfEntry(before, old) === digestOfEntry(now, fresh)
  }
  const known = names.filter((name) => before.servers.has(name))
  return {
    added: names.filter((name) => !before.servers.has(name)),
    changed: known.filter((name) => !isSame(name)),
    removed: [...before.servers.keys()].filter((name) => !now.servers.has(name)),
    unchanged: known.filter(isSame),
  }
}

const settingsOf = ({ servers }: Settings, names: readonly string[]): readonly ServerSettings[] =>
  names.map((name) => servers.get(name)).filter((server) => server !== undefined)

const inPlaceOf = (roster: Roster, name: string): Parameters<Supervisor['replace']>[1] => {
  const settings = roster.settings.servers.get(name)
  return settings === undefined ? null : { settings, owner: roster.ownerOf(name) }
}

const reasonOf = ({ servers }: Settings, name: string): string =>
  servers.has(name)
    ? 'the configuration was reloaded and changes it'
    : 'the configuration was reloaded and has it no more'
