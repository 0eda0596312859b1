// How a daemon comes up: folders, locks, servers, sockets; what a step did is undone in reverse, there and on the way down.
import { join } from 'node:path'
import type { Host } from '../config/host.ts'
import { warningsOfStrangers } from '../config/rule-warnings.ts'
import { Confided } from '../credentials/confided.ts'
import { SallyportError } from '../errors.ts'
import { loadKey } from '../journal/key.ts'
import { newDaemonId } from '../lib/ids.ts'
import type { Logger } from '../lib/logger.ts'
import { packageVersion } from '../lib/version.ts'
import { PeerQuery } from '../rpc/peer.ts'
import { protocolId } from '../rpc/protocol.ts'
import { prepareRuntimeDir, prepareStateDir } from '../rpc/runtime-dir.ts'
import type { ServerSettings, Settings } from '../schema/settings.ts'
import { findInitBinary } from '../sandbox/init-binary.ts'
import type { Caller, Emit } from '../supervisor/ports.ts'
import { Supervisor } from '../supervisor/supervisor.ts'
import { recordConfiguration } from './governance/applied.ts'
import { recordInstanceEvent } from './governance/instance-events.ts'
import { Daemon } from './daemon.ts'
import { answers, asAbsolute, Doors, draftOf, removeRecord, writeRecord } from './door.ts'
import { EventLog } from './events.ts'
import { Governance } from './governance/governance.ts'
import { Guard } from './guard.ts'
import { attachVia, hostMethods } from './methods/host-methods.ts'
import { operatorMethods } from './methods/operator-methods.ts'
import { Outputs } from './outputs.ts'
import { createMachine } from './machine/machine.ts'
import { admission, expectServerApart } from './separation.ts'
import { serviceOf } from './methods/methods.ts'
import { tellBug } from './bug-log.ts'
import { tellHealth } from './journal-log.ts'
import { concealed, concealing, discreet, redactorWith } from './redactor.ts'
import { createOutside, recordOf } from './outside.ts'
import { ourselves } from './ourselves.ts'
import { expectKept } from './kept.ts'
import { narrowing, policyUnder, policyVersionOf } from './governance/policy.ts'
import { Launches } from './launches.ts'
import { restoreRegistered } from './methods/registration-methods.ts'
import { reload, reloadsOnWord } from './reload.ts'
import { Roster } from './roster.ts'
import { ToolMethods } from './methods/tool-methods.ts'
import { turns } from './turns.ts'
import { type Undo, unwind } from './unwind.ts'

export interface DaemonOptions {
  readonly settings: Settings
  /** Reads the configuration anew, as `settings` were read; who waits for it no longer ends the reading */
  readonly load: (waiting: { readonly signal: AbortSignal }) => Promise<Settings>
  readonly host: Host
  readonly runtimeDir: string
  readonly stateDir: string
  readonly log: Logger
}

/**
 * Starts a daemon that answers on both sockets when this resolves. Throws ERR_DAEMON_RUNNING where another one does, and
 * ERR_SEPARATION, ERR_RUNTIME_UNSAFE where it must not run. Once it is down, or could not come up, this process has five
 * seconds to exit: then it is killed.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { host, runtimeDir, stateDir, log } = options
  const roster = new Roster(options.settings, host)
  const launches = new Launches()
  const { settings } = roster
  const undo: Undo = []
  const ended = Promise.withResolvers<SallyportError | null>()
  try {
    // 1. Who may come in, before there is a door.
    const uid = process.geteuid?.() ?? -1
    const { hostGid, separation, ...admitted } = admission(settings, uid)
    const judgeApart = (next: Settings): ((server: ServerSettings) => void) => {
      const fresh = admission(next, uid)
      expectKept(settings, next, fresh.separation === separation)
      return fresh.expectApart
    }
    const expectApart = (server: ServerSettings): void => expectServerApart(roster.current(), uid, server)

    // 2. The folders, and the locks that make everything in them ours.
    await prepareStateDir(stateDir) // first: the other may lie in it
    const paths = await prepareRuntimeDir(runtimeDir, hostGid)
    const initPath = await findInitBinary()
    const onLost = (error: SallyportError): void => ended.resolve(error)
    const guard = await Guard.hold({
      initPath,
      runtimeDir,
      stateDir,
      log,
      exitsAfter: true,
      isAnswered: answers,
      onLost,
    })
    undo.push({ what: 'the guard', undo: ({ hasFailed }) => guard.letGo(!hasFailed) })

    // 3. The machine and what runs on it; from here on a killed daemon leaves work for the guard.
    const id = newDaemonId()
    const events = new EventLog()
    const confided = new Confided()
    const emit: Emit = ({ bug, ...event }) => {
      // What happens to a server that somebody launched is nobody else's to see.
      const owner = event.server === null ? null : roster.ownerOf(event.server)
      const owned = { ...event, principal: event.principal ?? owner }
      if (bug !== undefined) tellBug(concealing(log, outside.broker, settings), owned, bug, confided)
      tellHealth(log, event)
      const kept = discreet(owned, confided)
      events.emit(concealed(kept, outside.broker, settings))
      recordInstanceEvent(() => governance.recorder, event)
      if (event.type === 'session/ended') governance.approvals.endSession(String(event.detail['session']))
    }
    const outside = await createOutside({
      settings,
      environment: host.env,
      runtimeDir,
      guard,
      ...recordOf(() => governance, emit),
    })
    undo.push({ what: 'the way out and the credentials', undo: async () => outside[Symbol.asyncDispose]() })
    const { broker, outfits } = outside
    const redactor = redactorWith(broker, () => roster.operators())
    const machine = await createMachine({
      settings,
      daemon: id,
      host,
      runtimeDir,
      stateDir,
      guard,
      outfits,
      confided,
      emit,
      isHeld: (server) => governance.isHeld(server),
      recordImage: (type, body) => governance.recorder.record(type, body),
      log: concealing(log, broker, settings),
    })
    undo.push({ what: 'the machine’s drivers and pools', undo: async () => machine[Symbol.asyncDispose]() })
    let supervisor: Supervisor | null = null
    const notHalted = (err: unknown): void => log.error({ err }, 'server could not be halted')
    const [directory, keyPath] = [join(stateDir, 'journal'), join(stateDir, 'journal.key')]
    const governance = await Governance.open({
      settings,
      directory,
      keyPath,
      clockPath: join(stateDir, 'clock'),
      owedPaths: [stateDir, runtimeDir].map((folder) => join(folder, 'journal.owed')),
      notes: [stateDir, runtimeDir].map((folder) => join(folder, 'journal.uncut')),
      daemon: id,
      emit,
      folds: { roster, names: roster.formerNames, launches },
      redactor,
      confided,
      outfits,
      separation,
      codeOf: machine.codeOf,
      originOf: machine.originOf,
      ownerOf: (server) => roster.ownerOf(server),
      stands: (server) => roster.stands(server),
      halt: (server, reason) => supervisor?.quarantine(server, reason).catch(notHalted),
      review: () => supervisor?.review(),
    })
    undo.push({ what: 'the journal', undo: () => governance[Symbol.asyncDispose]() })
    const outputs = await Outputs.open({ directory: join(stateDir, 'outputs'), redactor })
    undo.push({ what: 'kept outputs', undo: () => outputs[Symbol.asyncDispose]() })
    const policy = policyUnder(governance)
    const whole = policy(roster.current)
    supervisor = new Supervisor({
      ...whole,
      launch: machine.launch,
      pools: machine.pools,
      emit,
      describe: machine.describe,
      stormed: (...storm) => void governance.consequences.storm(...storm).catch(notHalted),
      narrow: narrowing(roster.current, uid, policy),
      overflow: outputs,
      random: Math.random,
    })
    await launches.end(governance, String(uid))
    await recordConfiguration(governance, options.settings)
    await restoreRegistered({ roster, supervisor, expectApart }, log)
    for (const warning of warningsOfStrangers(roster.current())) log.warn({ warning }, 'configuration')
    governance.endReplaced((server) => policyVersionOf(roster.current(), server))
    governance.resume()
    const peers = new PeerQuery(initPath)
    undo.push({ what: 'questions after peers', undo: async () => peers[Symbol.dispose]() })
    const doors = new Doors({ guard, peers, log })
    undo.push({ what: 'connections', undo: () => doors[Symbol.asyncDispose]() })
    undo.push({ what: 'servers', undo: async () => supervisor[Symbol.asyncDispose]() })

    // 4. The operator's door, then the hosts': whoever finds host.sock finds all of the daemon.
    const version = packageVersion()
    const hello = {
      protocol: protocolId,
      version,
      daemon: id,
      pid: process.pid,
      separation,
      limits: machine.limits,
      runtime_dir: runtimeDir,
    } as const
    const shutDown = (reason: string): void => {
      log.info({ reason }, 'shutdown asked for')
      ended.resolve(null)
    }
    const stopping = new AbortController()
    const waiting = { signal: stopping.signal }
    const [inTurn, inRosterTurn] = [turns(), turns()]
    let begun: Promise<unknown> = Promise.resolve()
    const reloading = {
      load: options.load,
      judgeApart,
      begun: (work: Promise<void>) => void (begun = Promise.all([begun, work])),
      roster,
      supervisor,
      governance,
      machine,
      emit,
      log,
      ...waiting,
      inTurn,
      inRosterTurn,
    }
    const tools = new ToolMethods({ supervisor, governance, machine, policy: whole })
    const ports = {
      supervisor,
      governance,
      roster,
      machine,
      expectApart,
      redactor,
      tools,
      events,
      outputs,
      hello,
      shutDown,
      directory,
      key: await loadKey(keyPath, directory),
      policy: whole,
      inTurn: inRosterTurn,
      stopping: stopping.signal,
      reload: (caller: Caller) => reload(reloading, caller),
    }
    const attach = attachVia(supervisor)
    await doors.open({
      path: paths.operatorSocket,
      gid: null,
      service: serviceOf('operator', operatorMethods(ports), attach),
      admits: (caller) => admitted.admitsOperator(caller),
    })
    await doors.open({
      path: paths.hostSocket,
      gid: hostGid,
      service: serviceOf('host', hostMethods(ports), attach),
      admits: (caller) => admitted.admitsHost(caller),
    })

    // 5. The record of who answers here, and a watch on the doors: a daemon that hosts, or the operator, cannot reach must not keep servers.
    const record = join(paths.hostDirectory, 'daemon.json')
    for (const path of [record, draftOf(record)]) guard.cleanUp(`unlink ${asAbsolute(path)}`)
    undo.push({ what: 'daemon.json', undo: () => removeRecord(record, id) })
    await writeRecord(record, {
      id,
      version,
      protocol: protocolId,
      pid: process.pid,
      url: `unix:${paths.hostSocket}`,
    })
    doors.watch(ended.resolve)

    // 6. What is known at once of every server, and those that start without being asked; neither is waited for.
    const first = [...settings.servers.values()]
    const names = first.map(({ name }) => name)
    const starting = machine
      .registerAll(first, waiting)
      .then(() => supervisor.startEager(ourselves(), names, waiting))
    begun = Promise.all([begun, starting])
    undo.push({
      what: 'starts and a reload that are under way',
      async undo() {
        stopping.abort(new SallyportError('ERR_DAEMON_UNAVAILABLE', 'Sallyport is stopping'))
        await inTurn(async () => undefined)
        await inRosterTurn(async () => undefined)
        await begun
      },
    })
    log.info({ daemon: id, socket: paths.hostSocket, separation }, 'daemon ready')
    return new Daemon(id, paths, reloadsOnWord(reloading), ended.promise, { doors, undo, log })
  } catch (error) {
    await unwind(undo, log)
    throw error
  }
}
